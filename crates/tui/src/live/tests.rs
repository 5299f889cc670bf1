//! Screens as a user sees them: everything the view writes goes through a terminal in memory.

use crate::{Answer, Display, Mode, Paint, Settings, Size, Stream};
use protocol::{Event, LogStream, Outcome, SpanId, SpanKind};
use screen::Screen;
use std::io::Write;
use std::sync::{Arc, Mutex};

const SECOND: u64 = 1_000_000;

/// A display on a terminal.
struct Stage {
    display: Display,
    terminal: Arc<Mutex<Screen>>,
    size: Arc<Mutex<Size>>,
    written: Arc<Mutex<usize>>,
    now: u64,
}

struct Wire(Arc<Mutex<Screen>>, Arc<Mutex<usize>>);

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // The terminal of the kernel makes both of a newline.
        let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\n', "\r\n");
        self.0.lock().unwrap().feed(text.as_bytes());
        *self.1.lock().unwrap() += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Stage {
    fn new(columns: usize, rows: usize, level: i32) -> Self {
        Self::with(columns, rows, level, true)
    }

    fn with(columns: usize, rows: usize, level: i32, keys: bool) -> Self {
        let terminal = Arc::new(Mutex::new(Screen::new(columns, rows, 500)));
        let (written, size) = (Arc::default(), Arc::new(Mutex::new(Size { columns, rows })));
        let asked = size.clone();
        let settings = Settings {
            mode: Mode::Live,
            level,
            debug: false,
            paint: Paint { colour: false },
            size: Box::new(move || Some(*asked.lock().unwrap())),
            keys,
            heartbeat: None,
        };
        let wire = || Box::new(Wire(terminal.clone(), Arc::clone(&written)));
        let display = Display::new(settings, wire(), wire());
        Self { display, terminal, size, written, now: 0 }
    }

    fn event(&mut self, event: Event) {
        self.display.event(&event, self.now);
    }

    fn start(&mut self, id: u64, parent: Option<u64>, name: &str) {
        self.event(Event::Started {
            id: SpanId(id),
            parent: parent.map(SpanId),
            name: name.into(),
            kind: SpanKind::Call,
            call: None,
            at: self.now,
        });
    }

    fn end(&mut self, id: u64, outcome: Outcome) {
        self.event(Event::Ended { id: SpanId(id), outcome, at: self.now });
    }

    fn fail(&mut self, id: u64, reason: &str) {
        self.end(id, Outcome::Failed(reason.into()));
    }

    fn log(&mut self, id: u64, text: &str) {
        let stream = LogStream::Stdout;
        self.event(Event::Log { id: SpanId(id), stream, text: text.into(), at: self.now });
    }

    fn pass(&mut self, micros: u64) {
        self.now += micros;
        self.display.tick(self.now);
    }

    fn keys(&mut self, keys: &str) -> Answer {
        let answer = self.display.keys(keys.as_bytes(), self.now);
        // A lone escape is told from the begin of a sequence by time.
        self.display.tick(self.now);
        answer
    }

    fn resize(&mut self, columns: usize, rows: usize) {
        *self.size.lock().unwrap() = Size { columns, rows };
        self.terminal.lock().unwrap().resize(columns, rows);
    }

    fn screen(&self) -> String {
        self.terminal.lock().unwrap().text()
    }

    fn everything(&self) -> String {
        self.terminal.lock().unwrap().everything()
    }

    fn take_written(&self) -> usize {
        std::mem::take(&mut *self.written.lock().unwrap())
    }
}

/// Two steps that are over, one that failed inside another, and one that runs.
fn pipeline(columns: usize, rows: usize, level: i32) -> Stage {
    let mut stage = Stage::new(columns, rows, level);
    stage.start(1, None, "container.from(address: \"deb://bookworm\")");
    stage.start(2, Some(1), "fetch index");
    stage.end(2, Outcome::Cached);
    stage.now = SECOND;
    stage.start(3, Some(1), "unpack");
    stage.log(3, "libc6\nbase-files\n");
    stage.end(3, Outcome::Done);
    stage.end(1, Outcome::Done);
    stage.start(4, None, "checks");
    stage.start(5, Some(4), "lint");
    stage.log(5, "line 7: odd\n");
    stage.fail(5, "exit code: 1");
    stage.start(6, None, "container.withExec(args: [\"make\"])");
    stage.log(6, "cc one.c\ncc two.c\n");
    stage.pass(2 * SECOND);
    stage
}

#[test]
fn follows_what_runs_with_what_ended_last() {
    insta::assert_snapshot!(pipeline(60, 20, 1).screen(), @r#"
    ✔ container.from(address: "deb://bookworm") 1.0s
    ├╴$ fetch index 0.0s
    ╰╴✔ unpack 0.0s
    ◐ checks 2.0s
    ╰╴✘ lint 0.0s
      ! exit code: 1
    ◐ container.withExec(args: ["make"]) 2.0s
    ┃ cc one.c
    ┃ cc two.c
    3.0s · 2 running · 2 done · 1 cached · 1 failed · ↑↓ brows…
    "#);
}

#[test]
fn what_ended_gives_way_where_there_is_little_room() {
    insta::assert_snapshot!(pipeline(60, 7, 1).screen(), @r#"
    ✔ container.from(address: "deb://bookworm") 1.0s
    ◐ checks 2.0s
    ╰╴✘ lint 0.0s
      ! exit code: 1
    ◐ container.withExec(args: ["make"]) 2.0s
    3.0s · 2 running · 2 done · 1 cached · 1 failed · ↑↓ brows…
    "#);
}

#[test]
fn keys_go_through_the_tree() {
    let mut stage = pipeline(60, 20, 1);
    stage.keys("\x1b[B");
    insta::assert_snapshot!(stage.screen(), @r#"
      ✔ container.from(address: "deb://bookworm") +2  1.0s
      ◐ checks 2.0s
    ▸ ╰╴✘ lint 0.0s
        ! exit code: 1
        ┃ line 7: odd
      ◐ container.withExec(args: ["make"]) 2.0s
    3.0s · 2 running · 2 done · 1 cached · 1 failed · Esc foll…
    "#);
    stage.keys("g\x1b[C\x1b[C\x1b[B");
    insta::assert_snapshot!(stage.screen(), @r#"
      ✔ container.from(address: "deb://bookworm") 1.0s
      ├╴$ fetch index 0.0s
    ▸ ╰╴✔ unpack 0.0s
        ┃ libc6
        ┃ base-files
      ◐ checks 2.0s
      ╰╴✘ lint 0.0s
      ◐ container.withExec(args: ["make"]) 2.0s
    3.0s · 2 running · 2 done · 1 cached · 1 failed · Esc foll…
    "#);
    stage.keys("\x1b[D\x1b[D");
    assert!(stage.screen().contains("▸ ✔ container.from(address: \"deb://bookworm\") +2"));
    stage.keys("\x1b");
    assert!(stage.screen().contains("↑↓ brows"), "{}", stage.screen());
}

#[test]
fn a_step_can_be_zoomed_into_and_left() {
    let mut stage = pipeline(60, 20, 1);
    stage.keys("jG\r");
    insta::assert_snapshot!(stage.screen(), @r#"
    ▸ ◐ container.withExec(args: ["make"]) 2.0s
      ┃ cc one.c
      ┃ cc two.c
    3.0s · 2 running · 2 done · 1 cached · 1 failed · Esc back…
    "#);
    stage.keys("\x1b");
    assert!(stage.screen().contains("checks"), "{}", stage.screen());
}

#[test]
fn output_is_read_a_screen_at_a_time() {
    let mut stage = pipeline(40, 8, 1);
    let text: String = (1..=30).map(|line| format!("line {line}\n")).collect();
    stage.log(6, &text);
    stage.keys("jGo");
    insta::assert_snapshot!(stage.screen(), @r#"
    ◐ container.withExec(args: ["make… 2.0s
    line 26
    line 27
    line 28
    line 29
    line 30
    28-32 of 32 · ↑↓ scroll · Esc back
    "#);
    stage.keys("\x1b[5~\x1b[A");
    assert!(stage.screen().contains("line 21\nline 22"), "{}", stage.screen());
    stage.keys("g");
    assert!(stage.screen().contains("cc one.c\ncc two.c\nline 1"), "{}", stage.screen());
    stage.keys("\x1b");
    assert!(stage.screen().contains("▸ "), "{}", stage.screen());
}

#[test]
fn a_step_is_found_by_its_name() {
    let mut stage = pipeline(60, 20, 1);
    stage.keys("/INDEX");
    assert!(stage.screen().ends_with("/INDEX"), "{}", stage.screen());
    assert!(stage.screen().contains("▸ ├╴$ fetch index"), "{}", stage.screen());
    stage.keys("\r/container\r");
    let first = stage.screen();
    stage.keys("n");
    let second = stage.screen();
    stage.keys("N");
    assert_eq!(stage.screen(), first);
    assert_ne!(first, second);
    stage.keys("/x\x7f\x1b");
    assert!(!stage.screen().contains("/x"), "{}", stage.screen());
}

#[test]
fn e_goes_to_the_failures() {
    let mut stage = pipeline(60, 20, 1);
    stage.keys("jge");
    assert!(stage.screen().contains("▸ ╰╴✘ lint"), "{}", stage.screen());
}

#[test]
fn more_and_less_can_be_shown() {
    let mut stage = pipeline(60, 20, 1);
    assert!(stage.screen().contains("unpack"));
    stage.keys("-");
    assert!(!stage.screen().contains("unpack"), "{}", stage.screen());
    stage.keys("+");
    assert!(stage.screen().contains("unpack"));
}

#[test]
fn the_keys_are_told_to_who_asks() {
    let mut stage = pipeline(80, 12, 1);
    stage.keys("?");
    insta::assert_snapshot!(stage.screen(), @r#"
    ◐ checks 2.0s
    ╰╴✘ lint 0.0s
      ! exit code: 1
    ◐ container.withExec(args: ["make"]) 2.0s
    ┃ cc one.c
    ┃ cc two.c
    ↑ ↓ PgUp PgDn Home End   move            / n N   search, next, previous
    → ←                      open, close     e       next failure
    Enter                    zoom in         o       output of the step
    Esc                      back            + -     show more, less
    3.0s · 2 running · 2 done · 1 cached · 1 failed · ↑↓ browse · ? keys
    "#);
    stage.keys("?");
    assert!(!stage.screen().contains("PgUp"), "{}", stage.screen());
}

#[test]
fn the_display_stays_until_the_user_leaves() {
    let mut stage = pipeline(60, 20, 1);
    stage.end(6, Outcome::Done);
    stage.fail(4, "exit code: 1");
    assert!(stage.display.stay(stage.now));
    assert!(stage.screen().contains("▸ ╰╴✘ lint"), "{}", stage.screen());
    assert_eq!(stage.keys("\x1b"), Answer::Stay);
    assert_eq!(stage.keys("q"), Answer::Leave);
    stage.display.finish(true, stage.now);
    insta::assert_snapshot!(stage.screen(), @r#"
    ✔ container.from(address: "deb://bookworm") 1.0s
    ├╴$ fetch index 0.0s CACHED
    ╰╴✔ unpack 0.0s
    ✘ checks 2.0s ERROR
    ╰╴✘ lint 0.0s ERROR
      ┃ line 7: odd
      ! exit code: 1
    ✔ container.withExec(args: ["make"]) 2.0s
    "#);
    assert!(stage.terminal.lock().unwrap().shows_cursor());
}

#[test]
fn nothing_of_a_frame_stays_behind() {
    for (columns, rows) in [(60, 20), (20, 5), (8, 3), (200, 60)] {
        let mut stage = pipeline(columns, rows, 0);
        for keys in ["j", "o", "\x1b", "\r", "?", "\x1b", "\x1b", "\x1b"] {
            stage.keys(keys);
            stage.pass(SECOND);
        }
        stage.display.finish(false, stage.now);
        assert_eq!(stage.everything(), "", "{columns}x{rows}");
    }
}

#[test]
fn a_terminal_may_change_its_size() {
    let mut stage = pipeline(60, 20, 1);
    for (columns, rows) in [(30, 20), (80, 10), (25, 6), (100, 30)] {
        stage.resize(columns, rows);
        stage.pass(SECOND);
        let screen = stage.screen();
        assert_eq!(screen.matches("container.withE").count(), 1, "{columns}x{rows}:\n{screen}");
    }
    stage.display.finish(false, stage.now);
    assert!(!stage.screen().contains("running"), "{}", stage.screen());
}

#[test]
fn progress_bars_move_in_their_place() {
    let mut stage = Stage::new(40, 12, 0);
    stage.start(1, None, "curl");
    stage.log(1, " 10%\r 20%\r");
    stage.pass(SECOND);
    assert!(stage.screen().contains("┃  20%"), "{}", stage.screen());
    stage.log(1, " 90%\r");
    stage.pass(SECOND);
    assert!(stage.screen().contains("┃  90%") && !stage.screen().contains("20%"));
    stage.log(1, "\na 1%\nb 1%\n\x1b[2A\x1b[2Ka 50%\n\x1b[2Kb 70%\n");
    stage.pass(SECOND);
    insta::assert_snapshot!(stage.screen(), @r#"
    ◐ curl 3.0s
    ┃  90%
    ┃ a 50%
    ┃ b 70%
    3.0s · 1 running · ↑↓ browse · ? keys
    "#);
}

#[test]
fn output_of_a_child_passes_above_the_frame_in_whole_lines() {
    let mut stage = Stage::new(40, 12, 0);
    stage.start(1, None, "step");
    stage.pass(SECOND);
    stage.display.pass_through(Stream::Stdout, b"hel", stage.now);
    assert!(!stage.screen().contains("hel"));
    stage.display.pass_through(Stream::Stdout, b"lo\nwor", stage.now);
    stage.display.pass_through(Stream::Stderr, b"warning\n", stage.now);
    insta::assert_snapshot!(stage.screen(), @r#"
    hello
    warning
    ◐ step 1.0s
    1.0s · 1 running · ↑↓ browse · ? keys
    "#);
    stage.display.finish(false, stage.now);
    assert_eq!(stage.everything(), "hello\nwarning\nwor");
}

#[test]
fn wide_and_hostile_output_keeps_the_frame_in_shape() {
    let mut stage = Stage::with(20, 12, 0, false);
    stage.start(1, None, "日本語の名前はとても長いです");
    stage.log(1, &format!("{}\n", "漢".repeat(30)));
    stage.log(1, "\x1b]0;title\x07plain\x07\n\x1b[31mred\x1b[0m and a very long line of text\n");
    stage.log(1, "👩\u{200d}🔧 ⚠\u{fe0f} e\u{301}\n");
    stage.pass(SECOND);
    insta::assert_snapshot!(stage.screen(), @r#"
    ◐ 日本語の名… 1.0s
    ┃ 漢漢漢漢漢漢漢漢…
    ┃ plain
    ┃ red and a very l…
    ┃ 👩‍🔧 ⚠️ é
    1.0s · 1 running
    "#);
    stage.display.finish(false, stage.now);
    assert_eq!(stage.everything(), "");
}

#[test]
fn a_frame_writes_little_when_little_changes() {
    let mut stage = Stage::with(100, 40, 1, false);
    for id in 1..=10_000 {
        stage.start(id, None, "container.withEnvVariable(name: \"A\", value: \"1\")");
        stage.end(id, Outcome::Done);
    }
    stage.start(10_001, None, "container.withExec(args: [\"make\"])");
    stage.pass(SECOND);
    stage.take_written();
    stage.pass(SECOND / 10);
    // The line that runs and the last one, with the way to them.
    let written = stage.take_written();
    assert!((1..400).contains(&written), "{written} bytes");
    stage.pass(0);
    assert_eq!(stage.take_written(), 0, "no time has passed");
}

#[test]
fn a_display_that_is_dropped_shows_the_cursor() {
    let stage = pipeline(60, 20, 1);
    let terminal = stage.terminal.clone();
    assert!(!terminal.lock().unwrap().shows_cursor());
    drop(stage);
    assert!(terminal.lock().unwrap().shows_cursor());
}

#[test]
fn whatever_happens_the_frame_stays_in_its_place() {
    for round in 0..20 {
        let mut random = Numbers(round);
        let (columns, rows) = (2 + random.below(90), 3 + random.below(30));
        let mut stage = Stage::new(columns, rows, random.below(4) as i32);
        for step in 0..150 {
            happen(&mut stage, &mut random);
            let scrolled = stage.everything() != stage.screen();
            assert!(!scrolled, "round {round}, step {step}, {columns}x{rows}");
        }
        stage.display.step_aside();
        assert_eq!(stage.everything(), "", "round {round}, {columns}x{rows}");
    }
}

fn happen(stage: &mut Stage, random: &mut Numbers) {
    let id = 1 + random.below(40) as u64;
    let parent = Some(random.below(40) as u64).filter(|parent| *parent < id);
    let texts =
        ["a\n", "long line of text ", "\r50%", "\x1b[2A\x1b[Kup\n", "日本語\n", "\x1b[31mred\n"];
    let keys =
        ["j", "k", "\x1b[C", "\x1b[D", "\r", "\x1b", "o", "?", "/a\r", "n", "e", "+", "-", "G"];
    match random.below(7) {
        0 => stage.start(
            id,
            parent,
            ["short", "名前", "a rather long name of a step"][random.below(3)],
        ),
        1 => stage.end(id, Outcome::Done),
        2 => stage.fail(id, "no luck\nat all"),
        3 | 4 => stage.log(id, texts[random.below(texts.len())]),
        5 => drop(stage.keys(keys[random.below(keys.len())])),
        _ => stage.pass(SECOND / 3),
    }
}

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}
