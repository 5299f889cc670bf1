//! Stories of events, drawn by each view.

use crate::look::Look;
use crate::{Display, Mode, Paint, Settings, Shown, Size, live};
use protocol::{Event, LogStream, Outcome, SpanId, SpanKind, Unit};
use std::io::Write;
use std::sync::{Arc, Mutex};
use telemetry::Trace;

const SECOND: u64 = 1_000_000;

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap().replace('\x1b', "^")
    }
}

fn settings(mode: Mode, level: i32) -> Settings {
    Settings {
        mode,
        level,
        debug: false,
        paint: Paint { colour: false },
        size: Box::new(|| Some(Size { columns: 60, rows: 20 })),
        keys: false,
        heartbeat: Some(std::time::Duration::from_secs(30)),
    }
}

fn start(id: u64, parent: Option<u64>, name: &str, at: u64) -> Event {
    let parent = parent.map(SpanId);
    let kind = if name.contains("plumbing") { SpanKind::Internal } else { SpanKind::Call };
    Event::Started { id: SpanId(id), parent, name: name.into(), kind, call: None, at }
}

fn end(id: u64, outcome: Outcome, at: u64) -> Event {
    Event::Ended { id: SpanId(id), outcome, at }
}

fn log(id: u64, text: &str, at: u64) -> Event {
    Event::Log { id: SpanId(id), stream: LogStream::Stdout, text: text.into(), at }
}

fn progress(id: u64, done: u64, at: u64) -> Event {
    Event::Progress { id: SpanId(id), done, total: Some(45_000_000), unit: Unit::Bytes, at }
}

fn time(event: &Event) -> u64 {
    match event {
        Event::Started { at, .. }
        | Event::Ended { at, .. }
        | Event::Log { at, .. }
        | Event::Progress { at, .. } => *at,
    }
}

/// A pipeline whose second exec fails.
fn failing() -> Vec<Event> {
    let failed = |reason: &str| Outcome::Failed(reason.to_owned());
    vec![
        start(1, None, "container.from(address: \"deb://bookworm\")", 0),
        start(2, Some(1), "plumbing", 0),
        start(3, Some(2), "fetch index", 0),
        end(3, Outcome::Cached, SECOND / 10),
        end(2, Outcome::Done, SECOND / 10),
        end(1, Outcome::Done, SECOND),
        start(4, None, "container.withExec(args: [\"make\"])", SECOND),
        log(4, "building\n\x1b[31mwarn", 2 * SECOND),
        log(4, "ing\x1b[0m\nok\n", 2 * SECOND),
        end(4, Outcome::Done, 3 * SECOND),
        start(5, None, "container.withExec(args: [\"false\"])", 3 * SECOND),
        log(5, "no such luck", 4 * SECOND),
        end(5, failed("exit code: 1"), 5 * SECOND),
    ]
}

fn play(settings: Settings, events: &[Event], failed: bool) -> (String, Shown) {
    let buffer = Buffer::default();
    let mut display = Display::new(settings, Box::new(Buffer::default()), Box::new(buffer.clone()));
    let mut now = 0;
    for event in events {
        now = time(event);
        display.event(event, now);
        display.tick(now);
    }
    let shown = display.finish(failed, now);
    (buffer.text(), shown)
}

#[test]
fn plain_tells_begin_output_and_end() {
    let (text, shown) = play(settings(Mode::Plain, 1), &failing(), true);
    insta::assert_snapshot!(text, @r#"
    1   : container.from(address: "deb://bookworm")
    2   :   fetch index
    2   : fetch index CACHED [0.1s]
    1   : container.from DONE [1.0s]
    3   : container.withExec(args: ["make"])
    3   : [1.0s] | building
    3   : [1.0s] | warning
    3   : [1.0s] | ok
    3   : container.withExec DONE [2.0s]
    4   : container.withExec(args: ["false"])
    4   : [2.0s] | no such luck
    4   : container.withExec ERROR [2.0s]
    4   : ! exit code: 1
    "#);
    assert_eq!(shown, Shown { reasons: vec!["exit code: 1".into()], output: true });
}

#[test]
fn plain_tells_a_reason_once_and_again_only_when_much_was_said_since() {
    let failed = || Outcome::Failed("no".to_owned());
    let mut events = vec![
        start(1, None, "outer", 0),
        start(2, Some(1), "inner", 0),
        end(2, failed(), 0),
        end(1, failed(), 0),
    ];
    let (text, shown) = play(settings(Mode::Plain, 1), &events, true);
    insta::assert_snapshot!(text, @r#"
    1   : outer
    2   :   inner
    2   : inner ERROR [0.0s]
    2   : ! no
    1   : outer ERROR [0.0s]
    "#);
    assert_eq!(shown.reasons, ["no"], "the last word");
    events.extend([start(3, None, "other", 0), end(3, Outcome::Done, 0)]);
    assert_eq!(play(settings(Mode::Plain, 1), &events, true).1.reasons, [""; 0]);
}

#[test]
fn plain_shows_plumbing_to_who_asks() {
    let (text, _) = play(settings(Mode::Plain, 3), &failing()[..3], false);
    insta::assert_snapshot!(text, @r#"
    1   : container.from(address: "deb://bookworm")
    2   :   plumbing
    3   :     fetch index
    "#);
}

#[test]
fn plain_debug_adds_span_ids_and_colours_stay() {
    let mut settings = settings(Mode::Plain, 0);
    settings.debug = true;
    settings.paint = Paint { colour: true };
    let (text, _) = play(settings, &failing()[6..10], false);
    insta::assert_snapshot!(text, @r#"
    ^[2m1   4 :^[0m container.withExec(args: ["make"])
    ^[2m1   4 :^[0m [1.0s] | building
    ^[2m1   4 :^[0m [1.0s] | ^[31mwarning^[0m^[0m
    ^[2m1   4 :^[0m [1.0s] | ok
    ^[2m1   4 :^[0m container.withExec ^[32mDONE^[0m [2.0s]
    "#);
}

#[test]
fn plain_quiet_tells_only_failures() {
    let (text, shown) = play(settings(Mode::Plain, -1), &failing(), true);
    insta::assert_snapshot!(text, @r#"
    1   : container.withExec(args: ["false"])
    1   : container.withExec ERROR [2.0s]
    1   : ! exit code: 1
    "#);
    assert!(!shown.output);
}

#[test]
fn plain_does_not_mix_steps_that_run_side_by_side() {
    let events = [
        start(1, None, "a", 0),
        start(2, None, "b", 0),
        log(1, "a1\n", 100),
        log(2, "b1\n", 200),
        log(1, "a2\n", 300),
        log(2, "b2\n", 400),
        end(1, Outcome::Done, 500),
        log(2, "b3\n", 600),
        end(2, Outcome::Done, 700),
    ];
    let (text, _) = play(settings(Mode::Plain, 1), &events, false);
    insta::assert_snapshot!(text, @r#"
    1   : a
    2   : b
    1   : [0.0s] | a1
    1   : [0.0s] | a2
    1   : a DONE [0.0s]
    2   : [0.0s] | b1
    2   : [0.0s] | b2
    2   : [0.0s] | b3
    2   : b DONE [0.0s]
    "#);
}

#[test]
fn plain_takes_the_floor_from_who_falls_silent() {
    let buffer = Buffer::default();
    let mut display = Display::new(
        settings(Mode::Plain, 1),
        Box::new(Buffer::default()),
        Box::new(buffer.clone()),
    );
    for event in
        [start(1, None, "a", 0), start(2, None, "b", 0), log(1, "a1\n", 0), log(2, "b1\n", 0)]
    {
        display.event(&event, 0);
    }
    display.flush();
    display.tick(SECOND / 2);
    assert!(!buffer.text().contains("b1"));
    display.tick(SECOND);
    assert!(buffer.text().contains("b1"));
}

#[test]
fn plain_tells_progress_of_long_work() {
    let events = [
        start(1, None, "debian.fetch", 0),
        progress(1, 0, SECOND / 10),
        progress(1, 10_000_000, SECOND),
        progress(1, 20_000_000, 2 * SECOND + SECOND / 10),
        progress(1, 30_000_000, 3 * SECOND),
        end(1, Outcome::Done, 4 * SECOND),
    ];
    let (text, _) = play(settings(Mode::Plain, 1), &events, false);
    insta::assert_snapshot!(text, @r#"
    1   : debian.fetch
    1   : [2.1s] | 20.0 MB / 45.0 MB, 10.5 MB/s, 2s left
    1   : debian.fetch DONE [4.0s] 30.0 MB, 7.5 MB/s
    "#);
}

#[test]
fn plain_tells_the_progress_of_many_as_one() {
    let mut events = vec![start(1, None, "pull", 0)];
    events.extend((2..12).map(|id| start(id, Some(1), "layer", 0)));
    for at in 0..5 {
        events.extend((2..12).map(|id| progress(id, at * 1_000_000, at * SECOND)));
    }
    let (text, _) = play(settings(Mode::Plain, 1), &events, false);
    let told: Vec<&str> = text.lines().filter(|line| line.contains('|')).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    1   : [2.0s] | 10 at once: 11.0 MB / 450.0 MB, 10.0 MB/s, 43s left
    1   : [4.0s] | 10 at once: 31.0 MB / 450.0 MB, 10.0 MB/s, 41s left
    "#);
}

#[test]
fn silent_shows_nothing() {
    let (text, shown) = play(settings(Mode::Silent, 1), &failing(), true);
    assert_eq!((text.as_str(), shown), ("", Shown::default()));
}

#[test]
fn live_ends_with_the_tree_and_the_failure() {
    let (text, shown) = play(settings(Mode::Live, 1), &failing(), true);
    let (_, last) = text.rsplit_once("^[?25h").unwrap();
    insta::assert_snapshot!(last, @r#"
    ✔ container.from(address: "deb://bookworm") 1.0s
    ╰╴$ fetch index 0.1s CACHED
    ✔ container.withExec(args: ["make"]) 2.0s
    ✘ container.withExec(args: ["false"]) 2.0s ERROR
    ┃ no such luck
    ! exit code: 1
    "#);
    assert_eq!(shown, Shown { reasons: vec!["exit code: 1".into()], output: true });
}

#[test]
fn live_at_level_zero_keeps_only_failures() {
    let (text, _) = play(settings(Mode::Live, 0), &failing(), true);
    let (_, last) = text.rsplit_once("^[?25h").unwrap();
    insta::assert_snapshot!(last, @r#"
    ✘ container.withExec(args: ["false"]) 2.0s ERROR
    ┃ no such luck
    ! exit code: 1
    "#);
    let (text, shown) = play(settings(Mode::Live, -1), &failing(), true);
    assert!(text.ends_with("^[J^[?2026l^[?25h"), "{text}");
    assert_eq!(shown, Shown::default());
}

#[test]
fn live_leaves_the_screen_alone_when_work_is_quick() {
    let events = [start(1, None, "version", 0), end(1, Outcome::Done, 20_000)];
    assert_eq!(play(settings(Mode::Live, 0), &events, false).0, "");
}

fn draw(events: &[Event], columns: usize, rows: usize, now: u64) -> String {
    let mut trace = Trace::default();
    for event in events {
        trace.apply(event);
    }
    let frame = live::frame(&mut live::Browse::default(), &scene(&trace, columns, rows, now));
    for line in &frame {
        assert!(line.columns < columns, "{line:?} is too wide");
    }
    assert!(frame.len() < rows, "{} lines on {rows} rows", frame.len());
    frame.into_iter().map(|line| line.text + "\n").collect()
}

fn scene(trace: &Trace, columns: usize, rows: usize, now: u64) -> live::Scene<'_> {
    let look = Look { level: 0, debug: false, paint: Paint { colour: false } };
    let size = Size { columns, rows };
    live::Scene { trace, look, size, began: 0, now, keys: false, over: false }
}

fn busy() -> Vec<Event> {
    let mut events = vec![
        start(1, None, "container.from(address: \"deb://bookworm+python3\")", 0),
        start(2, Some(1), "fetch packages", 0),
        progress(2, 0, 0),
        progress(2, 12_300_000, 3 * SECOND),
        start(3, Some(1), "unpack", SECOND),
        end(3, Outcome::Done, 2 * SECOND),
        start(
            4,
            None,
            "container.withExec(args: [\"make\", \"-j8\", \"everything\", \"and\", \"more\"])",
            0,
        ),
    ];
    events.push(log(
        4,
        &(1..=9).map(|line| format!("cc -c file{line}.c\n")).collect::<String>(),
        0,
    ));
    events.push(start(5, None, "directory.entries", 0));
    events.push(end(5, Outcome::Cached, 3 * SECOND));
    events
}

#[test]
fn a_frame_shows_what_runs() {
    insta::assert_snapshot!(draw(&busy(), 60, 20, 3 * SECOND + 500_000), @r#"
    ◐ container.from(address: "deb://bookworm+python3") 3.5s
    ╰╴◐ fetch packages 12.3 MB / 45.0 MB, 4.1 MB/s  3.5s
    ◐ container.withExec(args: ["make", "-j8", "everythin… 3.5s
    ┃ cc -c file4.c
    ┃ cc -c file5.c
    ┃ cc -c file6.c
    ┃ cc -c file7.c
    ┃ cc -c file8.c
    ┃ cc -c file9.c
    $ directory.entries 3.0s
    3.5s · 3 running · 1 done · 1 cached
    "#);
}

#[test]
fn a_frame_fits_small_terminals() {
    insta::assert_snapshot!(draw(&busy(), 30, 7, 3 * SECOND + 500_000), @r#"
    ◐ container.from(addres… 3.5s
    ╰╴◐ fetch packages 3.5s
    ◐ container.withExec(ar… 3.5s
    ┃ cc -c file9.c
    $ directory.entries 3.0s
    3.5s · 3 running · 1 done · …
    "#);
    for columns in 1..50 {
        for rows in 3..12 {
            draw(&busy(), columns.max(2), rows, 3 * SECOND + 500_000);
        }
    }
}

#[test]
fn a_frame_of_many_steps_stays_on_the_screen() {
    let events: Vec<_> =
        (1..500).map(|id| start(id, id.checked_sub(1).filter(|id| *id > 0), "deep", 0)).collect();
    insta::assert_snapshot!(draw(&events, 60, 6, SECOND), @r#"
                          ├╴◐ deep 1.0s
                          ├╴◐ deep 1.0s
                          ├╴◐ deep 1.0s
                          ╰╴◐ deep 1.0s
    1.0s · 499 running · 495 not shown
    "#);
}

#[test]
fn a_frame_of_many_downloads_says_how_far_all_of_them_are() {
    let mut events = vec![start(1, None, "pull", 0)];
    for id in 2..42 {
        events.push(start(id, Some(1), "layer", 0));
        events.push(progress(id, 0, 0));
        events.push(progress(id, 1_000_000, SECOND));
    }
    insta::assert_snapshot!(draw(&events, 100, 5, SECOND), @r#"
    ├╴◐ layer 1.0 MB / 45.0 MB, 1.0 MB/s, 44s left  1.0s
    ├╴◐ layer 1.0 MB / 45.0 MB, 1.0 MB/s, 44s left  1.0s
    ╰╴◐ layer 1.0 MB / 45.0 MB, 1.0 MB/s, 44s left  1.0s
    1.0s · 41 running · 38 not shown · 40.0 MB / 1.8 GB, 40.0 MB/s, 44s left
    "#);
}

#[test]
fn what_was_moved_is_told_at_the_end() {
    let events = [
        start(1, None, "pull", 0),
        progress(1, 10_000_000, SECOND),
        progress(1, 45_000_000, 2 * SECOND),
        end(1, Outcome::Done, 4 * SECOND),
        start(2, None, "push", 4 * SECOND),
        progress(2, 10_000_000, 5 * SECOND),
        end(2, Outcome::Failed("no".into()), 6 * SECOND),
    ];
    insta::assert_snapshot!(play(settings(Mode::Plain, 1), &events, true).0, @r#"
    1   : pull
    1   : [2.0s] | 45.0 MB / 45.0 MB, 35.0 MB/s
    1   : pull DONE [4.0s] 45.0 MB, 11.2 MB/s
    2   : push
    2   : push ERROR [2.0s]
    2   : ! no
    "#);
    let (text, _) = play(settings(Mode::Live, 1), &events, true);
    insta::assert_snapshot!(text.rsplit_once("^[?25h").unwrap().1, @r#"
    ✔ pull 45.0 MB, 11.2 MB/s  4.0s
    ✘ push 2.0s ERROR
    ! no
    "#);
    insta::assert_snapshot!(draw(&events[..4], 60, 5, 4 * SECOND), @r#"
    ✔ pull 45.0 MB, 11.2 MB/s  4.0s
    4.0s · 1 done
    "#);
}

#[test]
fn dots_and_failures() {
    insta::assert_snapshot!(play(settings(Mode::Dots, 0), &failing(), true).0, @r#"
    ..
    container.withExec(args: ["make"]) | building
    container.withExec(args: ["make"]) | warning
    container.withExec(args: ["make"]) | ok
    .
    container.withExec(args: ["false"]) | no such luck
    X

    ✘ container.withExec(args: ["false"]) 2.0s ERROR
    ┃ no such luck
    ! exit code: 1
    "#);
}

#[test]
fn logs_are_prefixed() {
    let (text, shown) = play(settings(Mode::Logs, 0), &failing(), true);
    insta::assert_snapshot!(text, @r#"
    container.withExec(args: ["make"]) | building
    container.withExec(args: ["make"]) | warning
    container.withExec(args: ["make"]) | ok
    container.withExec(args: ["false"]) | no such luck
    "#);
    assert!(shown.output);
}

#[test]
fn report_gives_signs_of_life_and_a_tree() {
    let buffer = Buffer::default();
    let mut display = Display::new(
        settings(Mode::Report, 1),
        Box::new(Buffer::default()),
        Box::new(buffer.clone()),
    );
    for event in busy() {
        display.event(&event, 0);
    }
    display.tick(62 * SECOND);
    display.finish(false, 62 * SECOND);
    insta::assert_snapshot!(buffer.text(), @r#"
    [ci-tool] 1m2s elapsed · 3 steps running: container.from (1m2s), fetch packages (12.3 MB / 45.0 MB, 0 B/s, 1m2s), container.withExec (1m2s)
    ◐ container.from(address: "deb://bookworm+python3") 1m2s
    ├╴◐ fetch packages 1m2s
    ╰╴✔ unpack 1.0s
    ◐ container.withExec(args: ["make", "-j8", "everything", "and", "more"]) 1m2s
    $ directory.entries 3.0s CACHED
    "#);
}

#[test]
fn a_notice_is_shown_while_work_goes_on() {
    let notice = Event::Log {
        id: SpanId(1),
        stream: LogStream::Notice,
        text: "localhost:80 -> web\n".into(),
        at: 0,
    };
    for mode in [Mode::Report, Mode::Plain, Mode::Dots, Mode::Logs] {
        let buffer = Buffer::default();
        let streams = (Box::new(buffer.clone()), Box::new(buffer.clone()));
        let mut display = Display::new(settings(mode, 1), streams.0, streams.1);
        display.event(&busy()[0], 0);
        display.event(&notice, 0);
        display.tick(0);
        assert!(buffer.text().contains("localhost:80 -> web"), "{mode:?}: {}", buffer.text());
    }
}

#[test]
fn focus_reports_only_failures() {
    assert_eq!(play(settings(Mode::Focus, 1), &failing()[..10], true).0, "");
    insta::assert_snapshot!(play(settings(Mode::Focus, 1), &failing(), true).0, @r#"
    ✘ container.withExec(args: ["false"]) 2.0s ERROR
    ┃ no such luck
    ! exit code: 1
    "#);
}

#[test]
fn a_final_tree_of_very_many_steps_is_cut() {
    let mut events = vec![];
    for id in 1..1000 {
        events.push(start(id, None, "step", 0));
        events.push(end(id, Outcome::Done, 0));
    }
    let (text, _) = play(settings(Mode::Report, 1), &events, false);
    assert_eq!(text.lines().count(), 201);
    assert!(text.ends_with("… 799 more steps\n"), "{text}");
}
