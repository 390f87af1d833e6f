"""Metrics of several processes, added up."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from refract.core.metrics import Metrics
from refract.server.peers import MetricsPeers, merge_expositions


def counted(value: int) -> Metrics:
    metrics = Metrics()
    metrics.counter("refract_things", "Things, of a kind", ("kind",)).labels('a "b"').inc(value)
    metrics.gauge("refract_depth", "How deep").set(value)
    metrics.histogram("refract_seconds", "How long").observe(value)
    return metrics


def test_each_family_is_there_once_and_each_sample_says_whose_it_is() -> None:
    text = merge_expositions({"0": counted(3).render(), "2": counted(4).render()}).decode()

    found = {family.name: family for family in text_string_to_metric_families(text)}
    things = [
        sample
        for sample in found["refract_things"].samples
        if sample.name == "refract_things_total"
    ]
    assert {
        (sample.labels["process"], sample.labels["kind"], sample.value) for sample in things
    } == {("0", 'a "b"', 3), ("2", 'a "b"', 4)}
    assert {
        (sample.labels["process"], sample.value) for sample in found["refract_depth"].samples
    } == {("0", 3), ("2", 4)}
    assert found["refract_seconds"].type == "histogram"
    assert found["refract_processes"].samples[0].value == 2
    assert text.count("# TYPE refract_depth ") == 1


async def test_processes_ask_each_other_and_nobody_waits_for_the_silent(tmp_path: Path) -> None:
    first, second, third = (MetricsPeers(tmp_path, name) for name in ("0", "1", "redirect"))

    over = asyncio.Event()

    async def silence(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()
        await writer.wait_closed()

    async with AsyncExitStack() as running:
        await running.enter_async_context(first.serve(counted(1).render))
        await running.enter_async_context(second.serve(counted(2).render))
        assert b"refract_processes 2" in await first.collect(counted(1).render())
        assert b'refract_depth{process="1"} 2.0' in await first.collect(counted(1).render())

        silent = await asyncio.start_unix_server(silence, tmp_path / "7.socket")
        assert b"refract_processes 3" in await third.collect(
            counted(9).render()
        )  # itself and the two that answer
        over.set()
        silent.close()
        await asyncio.sleep(0.05)


async def test_who_takes_a_place_answers_there(tmp_path: Path) -> None:
    async with (
        MetricsPeers(tmp_path, "1").serve(counted(1).render),
        MetricsPeers(tmp_path, "1").serve(counted(5).render),
    ):
        assert b'refract_depth{process="1"} 5.0' in await MetricsPeers(tmp_path, "0").collect(b"")
