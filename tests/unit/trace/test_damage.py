"""Each damage of docs/traces.md: repaired and counted, or refused with the file, the place and the reason."""

import gzip
import json

import pytest
from kineto import annotation, cpu_events, cuda_events, document, kernel, kineto_layout, noted, op

from trisect.errors import TrisectError

SECTIONS_OF = ["forward", "backward"]
WHOLE = kineto_layout(document(cuda_events()))
ON_HOST = kineto_layout(document(cpu_events()))


@pytest.fixture
def expect(read):
    """Read `text`, compare with what `whole` gives, and return the repairs."""

    def compare(text, whole=WHOLE):
        wanted, found = read(whole, sections=SECTIONS_OF), read(text, sections=SECTIONS_OF)
        assert found.sections.equals(wanted.sections)
        assert found.collectives.equals(wanted.collectives)
        (kinds,) = noted(found, "repaired", "kinds") or [""]
        count = sum(int(part.split(" x")[1]) for part in kinds.split("; ") if part)
        assert found.readings["repairs"].tolist() == [count]
        assert noted(found, "repaired", "count") == [count] * (count > 0)
        return kinds

    return compare


def refused(read, text, *words, **options):
    with pytest.raises(TrisectError) as error:
        read(text, **({"sections": SECTIONS_OF} | options))
    message = str(error.value)
    assert "rank-0.json" in message and "\n" not in message
    for word in words:
        assert word in message
    return message


def replaced(old, new, text=WHOLE):
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize("bare", [b"nan", b"-nan", b"inf", b"-inf", b"NaN", b"Infinity", b"-Infinity"])
def test_bare_not_a_number(expect, bare):
    assert expect(replaced(b'"correlation": 1}', b'"correlation": 1, "GB/s": ' + bare + b"}")) == "bare_nan_or_inf x1"


@pytest.mark.parametrize(
    ("name", "repair"),
    [
        (rb"C:\src\gemm", "stray_backslash x2"),
        (rb"C:\u12", "stray_backslash x1"),
        (b'operator""_x<"a">', "stray_quote x4"),
        (b"tab\tand\x01", "control_character x2"),
        (b"line\nbreak", "control_character x1"),
        (b"caf\xe9", "invalid_utf8 x1"),
        (b"ends in \\", "stray_backslash x1"),
    ],
)
def test_text_that_kineto_does_not_escape(expect, name, repair):
    assert expect(replaced(b'"gemm"', b'"' + name + b'"')) == repair


def test_damage_in_an_event_that_is_filtered_out_is_no_repair(expect):
    text = kineto_layout(document(cuda_events(), deviceProperties=[{"id": 0}]))
    assert expect(replaced(b"aten::conv2d", b"aten\\::conv2d", text)) == ""


def test_damaged_header(expect):
    text = document(cuda_events(), deviceProperties=[{"id": 0, "clock": 1}])
    assert expect(replaced(b'"clock": 1', b'"clock": nan', text)) == "bare_nan_or_inf x1"


@pytest.mark.parametrize("whole", [WHOLE, ON_HOST])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.9, 0.999])
def test_cut_in_the_middle(read, whole, share):
    cut = whole.rstrip()[: int(len(whole.rstrip()) * share)]
    refused(read, cut, f"byte {len(cut)}", "ends inside")


def test_cut_after_an_event(read):
    end = WHOLE.rindex(b",\n  {")
    refused(read, WHOLE[:end], f"byte {end}", "ends inside")


def test_cut_after_the_list(read):
    refused(read, WHOLE.rstrip().removesuffix(b"}"), "damaged")


@pytest.mark.parametrize("share", [0.01, 0.5, 0.95])
def test_truncated_gzip(read, share):
    packed = gzip.compress(WHOLE)
    refused(read, packed[: int(len(packed) * share)], "gzip stream is cut or damaged", names=["rank-0.json.gz"])


def test_damaged_gzip(read):
    packed = bytearray(gzip.compress(WHOLE))
    packed[-5] ^= 1  # of the checksum
    refused(read, bytes(packed), "gzip stream", names=["rank-0.json.gz"])


def test_gzip_whatever_the_name(expect):
    assert expect(gzip.compress(WHOLE)) == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "empty"),
        (gzip.compress(b""), "empty"),
        (b"hello", "not a Kineto trace"),
        (b'{"a": 1}', "not a Kineto trace"),
        (b"[]", "0 iterations"),
        (b'{"traceEvents": []}', "0 iterations"),
        (b"[1, 2]", "byte"),
        (b'["a", {"ph": "X"}]', "byte"),
    ],
)
def test_no_trace(read, text, reason):
    refused(read, text, reason)


def test_display_unit_is_only_for_display(expect):
    assert expect(document(cuda_events(), displayTimeUnit="ns")) == ""


def shifted(events, us):
    return [{**one, "ts": one["ts"] + us} for one in events]


def test_zero_timestamp_of_a_kernel(read):
    events = shifted(cuda_events(), 5_000_000)
    trace = read(document([*events, kernel(77, 0, 20)]), sections=SECTIONS_OF)
    assert noted(trace, "repaired", "kinds") == ["zero_timestamp x1"]
    assert trace.sections.equals(read(document(events), sections=SECTIONS_OF).sections)


def test_a_trace_that_starts_at_zero_is_whole(read):
    trace = read(document(shifted(cuda_events(), -1000)), sections=SECTIONS_OF)
    assert trace.sections["start_ns"].min() == 1_000_000_000 + 50_000 and trace.readings["repairs"].tolist() == [0]


@pytest.mark.parametrize("name", ["forward", "ProfilerStep#1", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"])
def test_zero_timestamp_of_what_is_measured(read, name):
    events = shifted(cuda_events(), 5_000_000)
    next(one for one in events if one["name"] == name and one["cat"] != "gpu_user_annotation")["ts"] = 0
    text = document(events)
    message = refused(read, text, "no timestamp", name)
    assert f"byte {text.index(json.dumps(next(one for one in events if one['ts'] == 0)).encode())}:" in message


def changed(events, name, **values):
    events = [dict(one) for one in events]
    next(one for one in events if one["name"] == name).update(values)
    return document(events)


def test_negative_duration_of_a_kernel(read):
    trace = read(changed(cuda_events(), "gemm", dur=-5), sections=SECTIONS_OF)
    assert noted(trace, "repaired", "kinds") == ["negative_duration x1"]
    assert trace.sections["busy_ns"].tolist()[0] == 0


@pytest.mark.parametrize("dur", [220, 1e6, 1.8446744073709552e16, 1e300])
def test_kernel_that_lasts_into_the_next_of_its_stream(read, dur):
    trace = read(changed(cuda_events(), "gemm", dur=dur), sections=SECTIONS_OF)  # 1050 + 210 is the next one's start
    assert noted(trace, "repaired", "kinds") == ["impossible_duration x1"]
    assert trace.sections["busy_ns"].tolist()[0] == 210_000


def test_overflowed_duration_with_nothing_after_it(read):
    events = cuda_events()
    events[-1]["dur"] = 2**64
    refused(read, document(events), "30 days")


@pytest.mark.parametrize("dur", [-1, 2**64])
@pytest.mark.parametrize("name", ["forward", "ProfilerStep#0", "gloo:all_reduce"])
def test_impossible_duration_of_what_is_measured(read, name, dur):
    refused(read, changed(cpu_events(), name, dur=dur), "impossible duration", "byte")


def test_negative_duration_of_a_collective(read):
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"
    refused(read, changed(cuda_events(), name, dur=-1), "negative duration", "byte")


def test_impossible_duration_of_a_host_operator(read):
    trace = read(changed(cpu_events(), "aten::convolution", dur=-1), sections=SECTIONS_OF)
    assert noted(trace, "repaired", "kinds") == ["impossible_duration x1"]
    assert trace.sections["busy_ns"].tolist()[0] == 200_000  # the outer operator covers it


def test_host_collective_that_lasts_into_the_next(read):
    trace = read(changed(cpu_events(), "gloo:all_reduce", dur=400), sections=SECTIONS_OF)
    assert noted(trace, "repaired", "kinds") == ["impossible_duration x1"]
    assert (trace.collectives["end_ns"] - trace.collectives["start_ns"]).tolist()[0] == 322_000


def test_duplicated_events(expect):
    events = cuda_events()
    twice = [one for one in events if one["name"] in ("gemm", "forward", "ProfilerStep#0")]
    whole = document(events)
    assert expect(document([*events, *twice]), whole) == f"duplicated_event x{len(twice) - 2}"
    on_host = cpu_events()
    twice = [one for one in on_host if one["name"] in ("gloo:all_reduce", "backward")]
    assert expect(document([*on_host, *twice]), document(on_host)) == "duplicated_event x4"


@pytest.mark.parametrize("number", [b"123456789012345678901234567890", b"18446744073709551616"])
def test_integer_over_64_bits(expect, number):
    assert expect(replaced(b'"correlation": 1}', b'"correlation": 1, "x": ' + number + b"}")) == ""
    text = replaced(b'"Seq": 1', b'"Seq": ' + number)
    with pytest.raises(AssertionError):
        expect(text)  # the sequence number itself is lost: -1, and counted
    assert expect(text, replaced(b', "Seq": 1', b"")) == "bad_value x1"


@pytest.mark.parametrize("key", ["ts", "dur"])
@pytest.mark.parametrize("value", [b"nan", b"null", b'"x"'])
def test_time_that_is_no_number(read, key, value):
    text = document(cuda_events())
    start = text.index(b'"gemm"')
    at = text.index(f'"{key}": '.encode(), start) + len(key) + 4
    end = text.index(b",", at)
    refused(read, text[:at] + value + text[end:], f"no usable {key}", "byte", "gemm")


@pytest.mark.parametrize(
    ("old", "new", "repair"),
    [
        (b'"cat": "kernel"', b'"cbt": "kernel"', "unknown_category x1"),
        (b'"cat": "kernel"', b'"cat": "kernfl"', "unknown_category x1"),
        (b'"ph": "X", "cat": "kernel"', b'"ph": "Q", "cat": "kernel"', "not_a_complete_event x1"),
        (b'"ph": "X", "cat": "kernel"', b'"ph": "Xkernel"', "unknown_category x1"),
    ],
)
def test_event_that_is_no_longer_known_for_what_it_is(read, old, new, repair):
    trace = read(replaced(old, new), sections=SECTIONS_OF)
    # The launch is still there, so that the loss of the kernel is also seen.
    assert noted(trace, "repaired", "kinds") == [repair]
    assert noted(trace, "iterations_skipped", "skipped") == [[{"iteration": 0, "lost": 1, "launched": 4}]]


def test_annotation_that_overlaps_a_sibling(read):
    events = [annotation("ProfilerStep#0", 0, 1000), annotation("forward", 10, 100), annotation("backward", 90, 100)]
    text = document(events)
    refused(read, text, f"byte {text.index(json.dumps(events[2]).encode())}", "'backward' overlaps 'forward'")


def test_iterations_that_overlap_or_repeat(read):
    refused(read, document([annotation("ProfilerStep#0", 10, 100), annotation("ProfilerStep#1", 50, 100)]), "overlaps")
    refused(
        read, document([annotation("ProfilerStep#0", 10, 50), annotation("ProfilerStep#0", 70, 50)]), "annotated twice"
    )
    refused(read, document([annotation("it", 10, 50), annotation("it#0", 70, 50)]), "name one kind", iteration="it")


def test_no_iterations(read):
    refused(read, document([annotation("forward", 0, 50)]), "0 iterations", "ProfilerStep", "forward")
    lost = [one for one in cuda_events() if one["cat"] != "kernel"]
    refused(read, document([*lost, kernel(5, 5000, 1)]), "0 iterations left", "left no kernel")


def test_event_broken_beyond_one_reading(read):
    text = replaced(b'"ts": 1020', b'"ts" 1020')
    at = text.index(b'"ph"', text.rindex(b"},", 0, text.index(b'"ts" 1020')))
    message = refused(read, text, "byte", "damaged event")
    assert abs(int(message.split("byte ")[1].split(":")[0]) - at) < 20


def test_two_events_with_the_text_between_them_gone(read):
    start = WHOLE.index(b'{"correlation": 1}')
    damaged = WHOLE[:start] + WHOLE[WHOLE.index(b'"kernel"', start) :]  # one event, with every key twice
    refused(read, damaged, "damaged event")


def test_break_between_events_that_is_damaged_hides_no_event(read):
    for new in (b"\n  x,\n  {", b"\n  },\n  x", b"\n  } \n  {"):
        where = WHOLE.index(b"\n  },\n  {", WHOLE.index(b"aten::conv2d"))
        damaged = WHOLE[:where] + new + WHOLE[where + len(b"\n  },\n  {") :]
        refused(read, damaged, "byte")


def test_event_with_an_object_inside_is_read_even_where_another_is_repaired(expect):
    events = [*cuda_events(), op("aten::x", 1020, 1) | {"args": {"inputs": [{"a": 1}, {"b": 2}]}}]
    text = document(events)
    assert expect(replaced(b'"gemm"', b'"ge\\mm"', text), text) == "stray_backslash x1"


def test_nothing_is_said_of_a_whole_trace(expect):
    assert expect(WHOLE) == "" and expect(ON_HOST, ON_HOST) == ""
