"""The arithmetic that a run asks for, and what torch is set to."""

from contextlib import AbstractContextManager

import torch

from trisect.config.plan import Run


def set_precision(run: Run) -> None:
    """Let float32 products round to TF32 or not, whatever torch's default is for this device."""
    torch.backends.cuda.matmul.allow_tf32 = run.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = run.precision == "tf32"


def autocast(run: Run) -> AbstractContextManager[object]:
    """torch.autocast for precision amp: float16 on CUDA, bfloat16 on CPU, which are torch's own choices."""
    return torch.autocast(run.device, enabled=run.precision == "amp")


def loss_scaler(run: Run) -> torch.amp.GradScaler:
    """Scales the loss where gradients in float16 would vanish; by 1 everywhere else."""
    return torch.amp.GradScaler(run.device, enabled=run.precision == "amp" and run.device == "cuda")


def arithmetic(network: torch.nn.Module) -> dict[str, bool]:
    """What torch and the network are set to that changes what is computed, or how fast."""
    largest = max(network.parameters(), key=torch.Tensor.numel)
    channels_last = torch.channels_last if largest.ndim == 4 else torch.channels_last_3d
    return {
        "matmul_tf32": torch.backends.cuda.matmul.allow_tf32,
        "cudnn_tf32": torch.backends.cudnn.allow_tf32,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "channels_last": largest.is_contiguous(memory_format=channels_last),
        "compile": isinstance(network, torch._dynamo.OptimizedModule),
    }
