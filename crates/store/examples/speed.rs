//! Temporary.
#![allow(warnings)]
use std::os::fd::*;
use std::time::Instant;
use store::*;
fn med(mut v: Vec<f64>) -> String {
    v.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let n = v.len();
    format!("p10 {:.3} med {:.3} p90 {:.3} ms", v[n / 10], v[n / 2], v[n * 9 / 10])
}
fn ms(t: Instant) -> f64 {
    t.elapsed().as_secs_f64() * 1e3
}
fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let dir = std::path::Path::new(&dir);
    let t = Instant::now();
    let store = Store::open(dir).unwrap();
    println!("open fresh {:.2} ms", ms(t));
    let owner = Owner::default();
    let mut e = store.edit(&Snapshot::empty()).unwrap();
    for d in ["proc", "dev", "sys", "etc", "usr/bin", "tmp"] {
        e.new_directory(d, 0o755, owner).unwrap();
    }
    for f in ["etc/hosts", "etc/hostname", "etc/resolv.conf", "usr/bin/x"] {
        e.new_file(f, b"x", 0o644, owner).unwrap();
    }
    let base = e.commit().unwrap();
    let tgt = |p: &str, k| Target { path: p.into(), kind: k };
    let targets = [
        tgt("/proc", TargetKind::Directory),
        tgt("/dev", TargetKind::Directory),
        tgt("/sys", TargetKind::Directory),
        tgt("/etc/hosts", TargetKind::File),
        tgt("/etc/hostname", TargetKind::File),
        tgt("/etc/resolv.conf", TargetKind::File),
    ];
    let missing = [tgt("/proc", TargetKind::Directory), tgt("/mnt/cache/x", TargetKind::Directory)];
    for (n, t) in
        [("no targets", &targets[..0]), ("6 targets", &targets[..]), ("stub needed", &missing[..])]
    {
        let mut b = vec![];
        let mut c = vec![];
        for _ in 0..300 {
            let s = Instant::now();
            let x = store.begin(&base, t).unwrap();
            b.push(ms(s));
            let s = Instant::now();
            x.commit().unwrap();
            c.push(ms(s));
        }
        println!("begin ({n}) {}; commit empty {}", med(b), med(c));
    }
    let mut b = vec![];
    let mut c = vec![];
    for i in 0..300 {
        let s = Instant::now();
        let x = store.begin(&base, &targets).unwrap();
        b.push(ms(s));
        std::fs::write(format!("/proc/self/fd/{}/f{i}", x.mount().as_fd().as_raw_fd()), "x")
            .unwrap();
        let s = Instant::now();
        x.commit().unwrap();
        c.push(ms(s));
    }
    println!("begin {}; commit one file {}", med(b), med(c));
    let mut v = vec![];
    for i in 0..300 {
        let s = Instant::now();
        let mut e = store.edit(&base).unwrap();
        e.new_file("etc/new", b"hello", 0o644, owner).unwrap();
        e.commit().unwrap();
        v.push(ms(s));
    }
    println!("edit one new file {}", med(v));
    let mut snap = base.clone();
    let s = Instant::now();
    let mut marks = vec![];
    let mut m = Instant::now();
    let mut most = 0;
    for i in 0..1000 {
        let mut e = store.edit(&snap).unwrap();
        e.new_file(&format!("f{i}"), b"hello", 0o644, owner).unwrap();
        snap = e.commit().unwrap();
        most = most.max(snap.layers().len());
        if i % 100 == 99 {
            marks.push(format!("{:.3}", ms(m) / 100.0));
            m = Instant::now();
        }
    }
    println!(
        "1000 edits {:.1} ms, most layers {most}, ms/step per 100: {}",
        ms(s),
        marks.join(" ")
    );
    let mut snap = base.clone();
    let s = Instant::now();
    let mut marks = vec![];
    let mut m = Instant::now();
    for i in 0..1000 {
        let x = store.begin(&snap, &targets).unwrap();
        std::fs::write(format!("/proc/self/fd/{}/g{i}", x.mount().as_fd().as_raw_fd()), "x")
            .unwrap();
        snap = x.commit().unwrap();
        if i % 100 == 99 {
            marks.push(format!("{:.3}", ms(m) / 100.0));
            m = Instant::now();
        }
    }
    println!("1000 scratches {:.1} ms, ms/step per 100: {}", ms(s), marks.join(" "));
    let s = Instant::now();
    store.flush().unwrap();
    println!("flush {:.2} ms", ms(s));
    let mut l = store.new_layer().unwrap();
    let s = Instant::now();
    for i in 0..10000 {
        l.file(
            &format!("d{}/f{i}", i / 100),
            &Meta { mode: 0o644, ..Default::default() },
            &mut &vec![7u8; 2000][..],
        )
        .unwrap();
    }
    let big = Snapshot::empty().push(LayerRef::whole(l.commit().unwrap()));
    println!("layer of 10000 files {:.1} ms", ms(s));
    let s = Instant::now();
    store.tree_digest(&big).unwrap();
    println!("tree digest 10000 files {:.1} ms", ms(s));
    let s = Instant::now();
    let mut e = store.edit(&big).unwrap();
    e.new_file("x", b"x", 0o644, owner).unwrap();
    let b2 = e.commit().unwrap();
    store.tree_digest(&b2).unwrap();
    println!("tree digest after an edit {:.1} ms", ms(s));
    let s = Instant::now();
    let mut e = store.edit(&base).unwrap();
    e.copy_tree((&store.view(&big), ""), "src", &CopyOptions::default()).unwrap();
    e.commit().unwrap();
    println!("copy_tree 10000 files {:.1} ms", ms(s));
    let s = Instant::now();
    store.merge(&[big.layers()[0].clone(), b2.layers()[1].clone()]).unwrap();
    println!("merge of it {:.1} ms", ms(s));
    let s = Instant::now();
    let mut h = 0;
    for i in 0..1000 {
        let k = protocol::Digest::of(&[i as u8, (i >> 8) as u8]);
        store.put_action(k, vec![1; 200]);
    }
    println!("1000 put_action {:.2} ms", ms(s));
    store.flush().unwrap();
    let s = Instant::now();
    for i in 0..1000 {
        let k = protocol::Digest::of(&[i as u8, (i >> 8) as u8]);
        h += store.action(&k).is_some() as i32;
    }
    println!("1000 action hits from SQLite {:.2} ms ({h})", ms(s));
    let s = Instant::now();
    drop(store);
    println!("close {:.2} ms", ms(s));
    let s = Instant::now();
    let st = Store::open(dir).unwrap();
    println!("reopen {:.2} ms", ms(s));
}
