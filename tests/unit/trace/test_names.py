"""Names of collectives in every spelling, and payloads by each operation's rule."""

import json

import msgspec
import pytest

from trisect.trace.collective_names import (
    device_bytes,
    element_bytes,
    host_bytes,
    is_communication_kernel,
    is_enqueue,
    is_host_collective,
    operation,
)
from trisect.trace.events import Args


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", "all_reduce"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
        ("NCCLDEVKERNEL_ALLREDUCE_SUM_F32_RING_LL", "all_reduce"),
        ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "all_reduce"),
        ("ncclBroadcastRingLLKernel_copy_i8(ncclColl)", "broadcast"),
        ("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*)", "broadcast"),
        ("ncclDevKernel_AllGather_RING_LL(x)", "all_gather"),
        ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(x)", "reduce_scatter"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL(x)", "reduce"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)", "send_recv"),
        ("ncclDevKernel_Generic(x)", "unknown"),
        ("gloo:all_reduce", "all_reduce"),
        ("gloo:barrier", "barrier"),
        ("gloo:send", "send"),
        ("gloo:recv", "recv"),
        ("gloo:all_to_all", "all_to_all"),
        ("nccl:_all_gather_base", "all_gather"),
        ("nccl:_reduce_scatter_base", "reduce_scatter"),
        ("nccl:all_reduce_barrier", "barrier"),
        ("nccl:coalesced", "coalesced"),
        ("allreduce_coalesced", "all_reduce"),
        ("_allgather_base", "all_gather"),
        ("all_to_allv", "all_to_all"),
        ("alltoall_base", "all_to_all"),
        ("gather", "gather"),
        ("scatter", "scatter"),
    ],
)
def test_operation(name, op):
    assert operation(name) == op


def test_kinds_of_events():
    assert is_communication_kernel("ncclDevKernel_Generic(x)") and is_communication_kernel("NcclKernel_x")
    assert not is_communication_kernel("void at::native::reduce_kernel<512, 1>(x)")
    assert is_enqueue("nccl:all_reduce") and not is_host_collective("nccl:all_reduce")
    assert is_host_collective("gloo:all_reduce") and not is_enqueue("gloo:all_reduce")
    assert not is_host_collective("forward")


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("Float", 4),
        ("BFloat16", 2),
        ("Long", 8),
        ("Float8_e4m3fn", 1),
        ("c10::Half", 2),
        ("long int", 8),
        ("unsigned char", 1),
        ("c10::complex<float>", 8),
        ("ComplexDouble", 16),
        ("Scalar", -1),
        ("", -1),
    ],
)
def test_element_bytes(dtype, size):
    assert element_bytes(dtype) == size


@pytest.mark.parametrize(
    ("op", "payload"),
    [
        ("all_reduce", 400),
        ("reduce_scatter", 400),
        ("all_gather", 800),
        ("gather", 3 * 400),
        ("scatter", 3 * 800),
        ("barrier", 0),
    ],
)
def test_payload_of_a_kernel(op, payload):
    assert device_bytes(op, Args(in_elements=100, out_elements=200, dtype="Float", group_size=3)) == payload


def test_payload_not_stated():
    assert device_bytes("all_reduce", Args(in_elements=100)) == -1
    assert host_bytes("all_reduce", Args(), 2) == -1
    assert host_bytes("barrier", Args(), 2) == 0


def shaped(dims, types):
    return Args(dims=msgspec.Raw(json.dumps(dims).encode()), types=msgspec.Raw(json.dumps(types).encode()))


@pytest.mark.parametrize(
    ("op", "dims", "types", "payload"),
    [
        ("all_reduce", [[10, 5]], ["float"], 200),
        ("all_gather", [[10]], ["long int"], 240),  # three ranks put in 80 bytes each
        ("all_gather", [[]], ["long int"], 24),  # a tensor without dimensions is one element
        ("scatter", [[10], [10]], ["float", "float"], -1),  # the root's list; other ranks have none
        ("broadcast", [[10], []], ["float", "Scalar"], 40),
        ("all_reduce", [[[10]]], ["TensorList"], -1),
    ],
)
def test_payload_of_a_host_collective(op, dims, types, payload):
    assert host_bytes(op, shaped(dims, types), 3) == payload
