//! Stories of events and the trace they leave.

use super::*;
use protocol::LogStream;

fn start(id: u64, parent: Option<u64>) -> Event {
    Event::Started {
        id: SpanId(id),
        parent: parent.map(SpanId),
        name: format!("step {id}"),
        kind: SpanKind::Call,
        call: None,
        at: id * 1_000_000,
    }
}

fn end(id: u64, outcome: Outcome) -> Event {
    Event::Ended { id: SpanId(id), outcome, at: id * 1_000_000 + 500_000 }
}

fn log(id: u64, text: &str) -> Event {
    Event::Log { id: SpanId(id), stream: LogStream::Stdout, text: text.into(), at: 7 }
}

fn failed() -> Outcome {
    Outcome::Failed("exit code: 1".into())
}

fn fold(limits: Limits, events: &[Event]) -> Trace {
    let mut trace = Trace::new(limits);
    for event in events {
        trace.apply(event);
    }
    trace
}

fn tree(trace: &Trace) -> String {
    fn write(trace: &Trace, span: &Span, depth: usize, into: &mut String) {
        assert_eq!(trace.depth(span), depth);
        into.push_str(&format!("{}{}\n", "  ".repeat(depth), span.name));
        for child in trace.children(span) {
            write(trace, child, depth + 1, into);
        }
    }
    let mut text = String::new();
    for root in trace.roots() {
        write(trace, root, 0, &mut text);
    }
    text
}

#[test]
fn builds_a_tree_in_the_order_of_starts() {
    let trace = fold(
        Limits::default(),
        &[start(1, None), start(2, Some(1)), start(3, Some(2)), start(4, Some(1)), start(5, None)],
    );
    assert_eq!(tree(&trace), "step 1\n  step 2\n    step 3\n  step 4\nstep 5\n");
}

#[test]
fn knows_how_spans_ended_and_how_long_they_took() {
    let trace = fold(
        Limits::default(),
        &[
            start(1, None),
            end(1, Outcome::Cached),
            start(2, None),
            end(2, failed()),
            start(3, None),
        ],
    );
    let span = |id| trace.span(SpanId(id)).unwrap();
    assert_eq!(span(1).elapsed(99_000_000), 500_000);
    assert_eq!(span(3).elapsed(3_250_000), 250_000);
    assert_eq!(span(2).failure(), Some("exit code: 1"));
    assert_eq!(trace.running().map(|span| span.id).collect::<Vec<_>>(), [SpanId(3)]);
    let expected = Counts { running: 1, cached: 1, failed: 1, ..Counts::default() };
    assert_eq!(trace.counts(), expected);
}

#[test]
fn the_cause_is_the_innermost_failure() {
    let trace = fold(
        Limits::default(),
        &[
            start(1, None),
            start(2, Some(1)),
            start(3, Some(2)),
            end(3, failed()),
            end(2, failed()),
            end(1, failed()),
        ],
    );
    assert_eq!(trace.causes().map(|span| span.id).collect::<Vec<_>>(), [SpanId(3)]);
}

#[test]
fn gives_out_complete_lines_and_the_rest_at_the_end() {
    let mut trace = fold(Limits::default(), &[start(1, None)]);
    let line = |text: &str, at| Line { stream: LogStream::Stdout, at, text: text.into() };
    assert_eq!(trace.apply(&log(1, "one\ntwo")), Change::Printed(SpanId(1), vec![line("one", 7)]));
    assert_eq!(
        trace.apply(&end(1, failed())),
        Change::Ended(SpanId(1), vec![line("two", 1_500_000)])
    );
    assert_eq!(trace.span(SpanId(1)).unwrap().log.lines().len(), 2);
}

#[test]
fn a_step_that_ended_well_keeps_no_output() {
    let trace = fold(Limits::default(), &[start(1, None), log(1, "a\nb\n"), end(1, Outcome::Done)]);
    let log = &trace.span(SpanId(1)).unwrap().log;
    assert_eq!((log.lines().len(), log.dropped()), (0, 2));
}

#[test]
fn output_of_what_ended_well_is_kept_within_a_limit_the_newest_first() {
    let limits = Limits { finished_lines: 9, finished_bytes: 10, ..Limits::default() };
    let mut trace = Trace::new(limits);
    for id in 1..=4 {
        for event in [start(id, None), log(id, "four\n"), end(id, Outcome::Done)] {
            trace.apply(&event);
        }
    }
    let kept = |id| trace.span(SpanId(id)).unwrap().log.lines().len();
    assert_eq!([1, 2, 3, 4].map(kept), [0, 0, 1, 1]);
    assert_eq!(trace.talk, 8);
}

#[test]
fn what_is_forgotten_takes_its_output_along() {
    let limits = Limits { finished: 1, finished_lines: 9, ..Limits::default() };
    let story = (1..4).flat_map(|id| [start(id, None), log(id, "x\n"), end(id, Outcome::Done)]);
    assert_eq!(fold(limits, &story.collect::<Vec<_>>()).talk, 1);
}

#[test]
fn spans_are_listed_by_how_they_ended() {
    let trace = fold(
        Limits::default(),
        &[
            start(1, None),
            start(2, Some(1)),
            start(3, Some(2)),
            end(3, failed()),
            end(2, Outcome::Done),
            end(1, Outcome::Cached),
        ],
    );
    let ids = |spans: Vec<&Span>| spans.iter().map(|span| span.id.0).collect::<Vec<_>>();
    assert_eq!(ids(trace.finished().collect()), [1, 2]);
    assert_eq!(ids(trace.failed().collect()), [3]);
    assert_eq!(ids(trace.around(trace.span(SpanId(3)).unwrap()).collect()), [2, 1]);
}

#[test]
fn forgets_the_oldest_and_moves_their_children_up() {
    let limits = Limits { finished: 1, ..Limits::default() };
    let trace = fold(
        limits,
        &[
            start(1, None),
            start(2, Some(1)),
            start(3, Some(2)),
            end(2, Outcome::Done),
            start(4, Some(3)),
            end(4, Outcome::Done),
        ],
    );
    assert_eq!(tree(&trace), "step 1\n  step 3\n    step 4\n");
    assert_eq!(trace.counts().forgotten, 1);
}

#[test]
fn stays_bounded_over_many_spans() {
    let limits = Limits { finished: 100, failed: 10, ..Limits::default() };
    let mut trace = Trace::new(limits);
    trace.apply(&start(0, None));
    for id in 1..50_000 {
        trace.apply(&start(id, Some(0)));
        trace.apply(&log(id, "some output\n"));
        trace.apply(&end(id, if id % 2 == 0 { failed() } else { Outcome::Done }));
    }
    assert_eq!(trace.spans.len(), 111);
    assert_eq!(trace.span(SpanId(0)).unwrap().children.len(), 110);
    assert_eq!(trace.causes().next().unwrap().id, SpanId(2), "the first failure is kept");
}

#[test]
fn ignores_what_it_cannot_place() {
    let mut trace = Trace::default();
    assert_eq!(trace.apply(&end(9, Outcome::Done)), Change::Nothing);
    assert_eq!(trace.apply(&log(9, "x\n")), Change::Nothing);
    trace.apply(&start(1, Some(1)));
    trace.apply(&start(2, Some(77)));
    assert_eq!(tree(&trace), "step 1\nstep 2\n");
    trace.apply(&end(1, Outcome::Done));
    assert_eq!(trace.apply(&end(1, failed())), Change::Nothing);
}
