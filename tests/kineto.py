"""Handmade Kineto traces, event by event, for reading tests whose answers are worked out by hand.

Times are microseconds. The main thread is 1, autograd's 2, gloo's worker 3; device streams are 7 and 20.
"""

import json

MAIN, AUTOGRAD, WORKER = 1, 2, 3
COMPUTE, COMM = 7, 20
PID, DEVICE = 100, 0


def event(cat, name, tid, ts, dur, pid=PID, **args):
    """A complete event; `args` as they are."""
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def annotation(name, ts, dur, tid=MAIN, **args):
    """An annotation of the host."""
    return event("user_annotation", name, tid, ts, dur, **args)


def op(name, ts, dur, tid=MAIN):
    """An operator of the host."""
    return event("cpu_op", name, tid, ts, dur)


def gloo(name, ts, dur, elements=10, tid=WORKER):
    """A collective of gloo on floats, with shapes."""
    return annotation(f"gloo:{name}", ts, dur, tid, **{"Input Dims": [[elements]], "Input type": ["float"]})


def launch(correlation, ts, tid=MAIN, name="cudaLaunchKernel"):
    """A call of the CUDA runtime."""
    return event("cuda_runtime", name, tid, ts, 1, correlation=correlation)


def kernel(correlation, ts, dur, name="gemm", stream=COMPUTE, cat="kernel", **args):
    """Device activity."""
    return event(cat, name, stream, ts, dur, DEVICE, correlation=correlation, **args)


def launched(correlation, at, ts, dur, tid=MAIN, **kwargs):
    """A kernel and its launch."""
    return [launch(correlation, at, tid), kernel(correlation, ts, dur, **kwargs)]


def nccl(correlation, at, ts, dur, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", tid=MAIN, **args):
    """A communication kernel and its launch; `args` with underscores for blanks."""
    named = {key.replace("_", " "): value for key, value in args.items()}
    return launched(correlation, at, ts, dur, tid, name=name, stream=COMM, **named)


def document(events, rank=0, world_size=1, **header):
    """The text of a trace; `header` adds or replaces keys, None removes one."""
    head = {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world_size},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1_000_000_000,
    } | header
    head = {key: value for key, value in head.items() if value is not None}
    return json.dumps({**head, "traceEvents": events}).encode()


def kineto_layout(text):
    """The same trace with the line breaks that Kineto writes."""
    trace = json.loads(text)
    events = [json.dumps(one)[1:-1] for one in trace.pop("traceEvents")]
    head = json.dumps(trace)[1:-1]
    broken = "\n  },\n  {\n    ".join(events)
    return f'{{\n  {head},\n  "traceEvents": [\n  {{\n    {broken}\n  }}\n  ]\n}}\n'.encode()


BASE_NS = 1_000_000_000


def cpu_events():
    """Two iterations of a gloo job: forward computes, backward computes and all-reduces, a barrier closes."""
    events = []
    for step in range(2):
        t = 1000 + 1000 * step
        events += [
            annotation(f"ProfilerStep#{step}", t, 900),
            annotation("forward", t + 10, 290),
            op("aten::conv2d", t + 20, 200),
            op("aten::convolution", t + 25, 190),
            annotation("backward", t + 310, 400),
            op("aten::mm", t + 320, 80),
            op("c10d::allreduce_", t + 405, 10),
            gloo("all_reduce", t + 410, 200),
            op("aten::mm", t + 420, 50),
            op("c10d::barrier", t + 730, 5),
            gloo("barrier", t + 732, 100),
        ]
    return events


def cuda_events():
    """Two iterations of an NCCL job; the host runs ahead, autograd's thread launches, one collective overlaps."""
    events = []
    for step in range(2):
        t, c = 1000 + 1000 * step, 100 * step
        events += [
            annotation(f"ProfilerStep#{step}", t, 900),
            annotation("forward", t + 10, 90),
            op("aten::conv2d", t + 20, 20),
            *launched(c + 1, t + 20, t + 50, 200),
            event("gpu_user_annotation", "forward", COMPUTE, t + 50, 200, DEVICE),
            annotation("backward", t + 110, 100),
            *launched(c + 2, t + 120, t + 260, 100, tid=AUTOGRAD),
            *nccl(c + 3, t + 140, t + 300, 260, tid=AUTOGRAD, **NCCL_ARGS, Seq=step + 1),
            *launched(c + 4, t + 150, t + 400, 60, tid=AUTOGRAD),
        ]
    return events


def noted(trace, kind, name):
    """What a trace's notes of one kind say under a name, one element a note."""
    return [note.values[name] for note in trace.notes if note.kind == kind]


NCCL_ARGS = {
    "Collective_name": "allreduce",
    "In_msg_nelems": 1000,
    "Out_msg_nelems": 1000,
    "Group_size": 2,
    "dtype": "Float",
    "Process_Group_Name": "0",
}
