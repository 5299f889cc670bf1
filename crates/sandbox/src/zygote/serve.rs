//! The zygote's main loop: one thread, one epoll, no wait for anything but the next event.
//!
//! A container is set up by the container's own process, so that a slow one holds up nobody. The
//! zygote only clones, tells the engine the pidfd, and later the exit code.

use super::line::Line;
use super::nest::Nest;
use super::world::{self, World};
use super::{NAME, role_socket};
use crate::container::{self, Reach};
use crate::packet;
use crate::sys::{self, Buried, Clone3};
use crate::wire::{self, Failure, Ready, Setup, Status};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Most network namespaces that wait for a container.
const MOST_LINES: usize = 8;

/// What epoll calls the request socket; pids are never zero.
const REQUESTS: i32 = 0;
/// What epoll calls the ends of children; pids are never as large.
const CHILDREN: i32 = i32::MAX;

/// The whole life of a zygote. The role that [`super::Zygote::start`] starts our binary in must do
/// nothing but call this and exit with what it returns.
pub fn zygote_main() -> i32 {
    let Ok(socket) = role_socket() else { return 2 };
    // First of all: the engine may be gone already, which then shows as the end of the socket.
    if rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).is_err() {
        return 2;
    }
    isolate();
    match start(&socket) {
        Ok(Some(zygote)) => zygote.serve(),
        Ok(None) => 0,
        Err(error) => {
            let bytes = postcard::to_stdvec(&Ready { error: Some(error) }).unwrap_or_default();
            // When even that cannot be said, the engine sees the end of the socket.
            packet::send(&socket, &bytes, &[]).map_or(2, |()| 1)
        }
    }
}

/// Sheds whatever the process inherited that a container should not inherit in turn. What fails here
/// was not there to begin with or is not ours to change, and nothing depends on it.
fn isolate() {
    if let Ok(stat) = std::fs::read_to_string("/proc/self/stat") {
        sys::erase_arguments(&stat);
    }
    let name = CString::new(NAME).unwrap_or_default();
    let core = rustix::process::getrlimit(Resource::Core);
    let no_core = Rlimit { current: Some(0), maximum: core.maximum };
    let _ = rustix::thread::set_name(&name);
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = rustix::process::setrlimit(Resource::Core, no_core);
    let _ = rustix::thread::set_thread_groups(&[]);
    let _ = sys::join_new_session_keyring();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    sys::default_all();
    sys::block_all();
}

/// Waits for the settings and prepares by them. None if the engine went away before.
fn start(socket: &OwnedFd) -> Result<Option<Zygote<'_>>, String> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| error.to_string())?;
    watch(&epoll, socket.as_fd(), REQUESTS).map_err(|error| error.to_string())?;
    let mut buffer = vec![0; wire::MAX_PACKET];
    wait_one(&epoll);
    let packet = packet::receive(socket, &mut buffer).map_err(|error| error.to_string())?;
    if packet.length == 0 {
        return Ok(None);
    }
    let bytes = &buffer[..packet.length];
    let setup: Setup = match bytes.split_at_checked(wire::HEAD) {
        Some(([wire::SETTINGS, ..], body)) if world::acceptable(&packet.descriptors) => {
            postcard::from_bytes(body).map_err(|error| error.to_string())?
        }
        _ => return Err("the first request brought no settings".to_owned()),
    };
    let world = World::prepare(&setup, packet.descriptors)?;
    for stream in [rustix::stdio::dup2_stdin, rustix::stdio::dup2_stdout] {
        stream(&world.null).map_err(|error| error.to_string())?;
    }
    let ready = postcard::to_stdvec(&Ready { error: None }).map_err(|error| error.to_string())?;
    packet::send(socket, &ready, &[]).map_err(|error| error.to_string())?;
    let containers = HashMap::new();
    Ok(Some(Zygote {
        socket,
        epoll,
        buffer,
        world,
        containers,
        children: None,
        nest: None,
        wanted: false,
        lines: Vec::new(),
        next_place: 0,
    }))
}

struct Zygote<'a> {
    socket: &'a OwnedFd,
    epoll: OwnedFd,
    buffer: Vec<u8>,
    world: World,
    containers: HashMap<i32, Container>,
    /// Tells of the end of every child, once there may be others than containers.
    children: Option<OwnedFd>,
    nest: Option<Nest>,
    /// Whether a nest should be made when there is time.
    wanted: bool,
    /// Network namespaces of containers that have ended.
    lines: Vec<Line>,
    /// Where the next container is plugged into the engine's network.
    next_place: u32,
}

struct Container {
    pidfd: OwnedFd,
    status: Option<OwnedFd>,
    /// Where it waited as a nest. It lets go of the other end when its command begins.
    control: Option<OwnedFd>,
    /// Where it is plugged into the engine's network.
    place: Option<u32>,
    /// Its network namespace, if another may have it afterwards and it is known.
    line: Option<Line>,
    /// Whether its command may change that namespace, or others know who is in it.
    powerful: bool,
}

impl Zygote<'_> {
    fn serve(mut self) -> i32 {
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            let idle = self.wanted && self.containers.is_empty();
            let timeout = idle.then(Timespec::default);
            let room = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, room, timeout.as_ref()) {
                Ok(0) => self.make_nest(),
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return 1,
            }
            for event in &events {
                match event.data.u64() as i32 {
                    REQUESTS if !self.take_request() => return 0,
                    REQUESTS => {}
                    CHILDREN => self.bury_orphans(),
                    name if name < 0 => self.hear(-name),
                    pid => self.bury(pid),
                }
            }
        }
    }

    /// Handles one request; false when the engine is gone.
    fn take_request(&mut self) -> bool {
        let packet = match packet::receive(self.socket, &mut self.buffer) {
            Ok(packet) => packet,
            Err(Errno::AGAIN | Errno::INTR) => return true,
            // What cannot be received has lost its status socket too, so the engine notices.
            Err(Errno::MSGSIZE) => return true,
            Err(_) => return false,
        };
        if packet.length == 0 {
            return false;
        }
        self.run(packet.length, packet.descriptors);
        // The next container is cloned from this memory and must not find this one's secrets in it.
        self.buffer[..packet.length].fill(0);
        true
    }

    fn run(&mut self, length: usize, descriptors: Vec<OwnedFd>) {
        let &[kind, group, network, powers, ..] = &self.buffer[..length] else { return };
        let powerful = powers != wire::POWERS_USUAL;
        let Some(status) = descriptors.first() else { return };
        if kind != wire::RUN && kind != wire::RUN_IN_FILE {
            return;
        }
        let usual = group == wire::GROUP_NONE && network == self.world.network;
        if usual && self.world.runtime.is_none() {
            self.wanted = true;
            if let Some(nest) = self.nest.take()
                && nest.hand_over(&self.world, &self.buffer[..length], &descriptors).is_ok()
            {
                let Nest { pid, pidfd, control, place, line } = nest;
                let (status, control) = (None, Some(control));
                let container = Container { pidfd, status, control, place, line, powerful };
                return self.begun(pid, container, descriptors);
            }
        }
        if network == wire::NETWORK_BESIDE
            && let Err(error) = self.adopt_orphans()
        {
            return fail(status.as_fd(), Failure::setup("watch")(error));
        }
        let line = self.line(network);
        let Some(reach) = line.as_ref().map(Line::reach).or_else(|| self.reach(network)) else {
            return fail(status.as_fd(), Failure::setup("find the network")(Errno::INVAL));
        };
        let directory = match group {
            wire::GROUP_DIRECTORY => descriptors.get(container::GROUP_PLACE).map(AsFd::as_fd),
            _ => None,
        };
        let flags = match self.world.runtime {
            None => namespaces(group, reach),
            Some(_) => namespaces(group, reach) & !(libc::CLONE_NEWIPC | libc::CLONE_NEWUTS) as u64,
        };
        match sys::clone_process(flags, directory) {
            Ok(Clone3::Child) => {
                container::enter(&self.world, reach, &self.buffer[..length], descriptors)
            }
            Ok(Clone3::Parent { pid, pidfd }) => match watch(&self.epoll, pidfd.as_fd(), pid) {
                Ok(()) => {
                    let (status, control, place) = (None, None, reach.place());
                    let container = Container { pidfd, status, control, place, line, powerful };
                    self.begun(pid, container, descriptors);
                }
                Err(error) => {
                    // Nobody would learn of its end, so it must not live.
                    let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
                    fail(status.as_fd(), Failure::setup("watch")(error));
                }
            },
            Err(error) => fail(status.as_fd(), Failure::setup("clone")(error)),
        }
    }

    /// Sees to it that all of what runs beside a container is buried. It is in there, and its parent outside: once that
    /// is killed, the machine's process 1 would have to bury it, and until then the container does not end.
    /// Some never do, and others take their time.
    fn adopt_orphans(&mut self) -> Result<(), Errno> {
        if self.children.is_none() {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
            let children = sys::watch_children()?;
            watch(&self.epoll, children.as_fd(), CHILDREN)?;
            self.children = Some(children);
        }
        Ok(())
    }

    fn bury_orphans(&mut self) {
        // Many ends can be one signal.
        if let Some(children) = &self.children {
            let _ = rustix::io::read(children, &mut [0; size_of::<libc::signalfd_siginfo>()]);
        }
        while let Ok(Some(ended)) = sys::wait_for_any() {
            self.buried(ended);
        }
    }

    /// Makes the next container while nobody waits. Without one the next run is only slower.
    fn make_nest(&mut self) {
        self.wanted = false;
        let network = self.world.network;
        let line = self.line(network);
        let Some(reach) = line.as_ref().map(Line::reach).or_else(|| self.reach(network)) else {
            return;
        };
        let flags = namespaces(wire::GROUP_NONE, reach);
        let Ok(nest) = Nest::make(&self.world, flags, reach, &mut self.buffer) else { return };
        let nest = Nest { line, ..nest };
        let watched = watch(&self.epoll, nest.pidfd.as_fd(), nest.pid)
            .and_then(|()| watch(&self.epoll, nest.control.as_fd(), -nest.pid));
        match watched {
            Ok(()) => self.nest = Some(nest),
            Err(_) => {
                let _ = rustix::process::pidfd_send_signal(&nest.pidfd, Signal::KILL);
            }
        }
    }

    /// A network namespace that a container has left, if there is one of this kind. Looked at now and not when
    /// that container ended, because the kernel takes a moment to forget sockets.
    fn line(&mut self, network: u8) -> Option<Line> {
        if network != self.world.network {
            return None;
        }
        let quiet = self.lines.iter().rposition(Line::is_quiet)?;
        Some(self.lines.remove(quiet))
    }

    /// What byte 2 of a run means now: a container of the engine's network gets a place there that
    /// nobody has. None if there is no such network, or no place.
    fn reach(&mut self, network: u8) -> Option<Reach<'static>> {
        match network {
            wire::NETWORK_NONE => Some(Reach::Itself),
            wire::NETWORK_HOST => Some(Reach::Host),
            wire::NETWORK_BESIDE => Some(Reach::Beside),
            wire::NETWORK_BRIDGE => {
                let places = self.world.outlet?.places;
                let taken = |place: u32| {
                    let places = self.containers.values().filter_map(|container| container.place);
                    let waiting = self.lines.iter().filter_map(Line::place);
                    let nest = self.nest.iter().filter_map(|nest| nest.place);
                    places.chain(waiting).chain(nest).any(|taken| taken == place)
                };
                let after = |place: u32| (place + 1) % places;
                let mut free = std::iter::successors(Some(self.next_place), |p| Some(after(*p)));
                let place = free.by_ref().take(places as usize).find(|place| !taken(*place))?;
                self.next_place = after(place);
                Some(Reach::Bridge(place))
            }
            _ => None,
        }
    }

    /// Notes a container that now has its run.
    fn begun(&mut self, pid: i32, mut container: Container, descriptors: Vec<OwnedFd>) {
        let Some(status) = descriptors.into_iter().next() else { return };
        let started = Status::Started { place: container.place };
        tell(status.as_fd(), &started, &[container.pidfd.as_fd()]);
        container.status = Some(status);
        self.containers.insert(pid, container);
    }

    /// A container that is or was a nest says what its network namespace is, or that its command begins.
    fn hear(&mut self, pid: i32) {
        let nest = self.nest.as_mut().filter(|nest| nest.pid == pid);
        let container = self.containers.get_mut(&pid);
        let (control, place, line) = match (nest, container) {
            (Some(nest), _) => (Some(&nest.control), nest.place, &mut nest.line),
            (None, Some(it)) => (it.control.as_ref(), it.place, &mut it.line),
            (None, None) => return,
        };
        let Some(control) = control else { return };
        match packet::receive(control, &mut [0]) {
            Ok(packet) if packet.length > 0 => *line = Line::new(packet.descriptors, place),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => self.busy(pid),
        }
    }

    /// The command of a container that was a nest runs now, which is the time to make the next. Any earlier
    /// would hold it up: who changes its root waits for every processor to leave the kernel. Any later
    /// would hold up whoever waits for the command's end.
    fn busy(&mut self, pid: i32) {
        let control = self.containers.get_mut(&pid).and_then(|container| container.control.take());
        let Some(control) = control else { return };
        // Closing is not enough: a container that is about to begin may hold the same description.
        let _ = epoll::delete(&self.epoll, &control);
        if self.nest.is_none() {
            self.make_nest();
        }
    }

    fn bury(&mut self, pid: i32) {
        // Who is not there any more was among those that `bury_orphans` has found.
        if let Ok(Some(ended)) = sys::wait_for(pid) {
            self.buried(ended);
        }
    }

    fn buried(&mut self, Buried { pid, code, usage }: Buried) {
        self.nest.take_if(|nest| nest.pid == pid);
        let Some(container) = self.containers.remove(&pid) else { return };
        // Closing is not enough: the engine holds the same description.
        let _ = epoll::delete(&self.epoll, &container.pidfd);
        let exited = Status::Exited {
            code,
            user_micros: usage.user.as_micros() as u64,
            system_micros: usage.system.as_micros() as u64,
            max_resident: usage.max_resident,
        };
        if let Some(status) = &container.status {
            tell(status.as_fd(), &exited, &[]);
        }
        if let Some(line) = container.line.filter(|_| !container.powerful) {
            if self.lines.len() == MOST_LINES {
                self.lines.remove(0);
            }
            self.lines.push(line);
        }
    }
}

/// The namespaces that a container is cloned into. One that plugs itself into the engine's network makes
/// that namespace itself, and one that runs beside another has none of its own.
fn namespaces(group: u8, reach: Reach<'_>) -> u64 {
    if matches!(reach, Reach::Beside) {
        return 0;
    }
    let mut flags =
        libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
    if matches!(reach, Reach::Itself) {
        flags |= libc::CLONE_NEWNET;
    }
    // A control group namespace is rooted where its maker is, so who still has to move makes it later.
    if group != wire::GROUP_FILES {
        flags |= libc::CLONE_NEWCGROUP;
    }
    flags as u64
}

/// Tells the engine about a run. Who is told may have lost interest, which is no error.
pub(crate) fn tell(status: BorrowedFd<'_>, message: &Status, descriptors: &[BorrowedFd<'_>]) {
    if let Ok(bytes) = postcard::to_stdvec(message) {
        let _ = packet::send(status, &bytes, descriptors);
    }
}

fn fail(status: BorrowedFd<'_>, failure: Failure) {
    tell(status, &Status::Failed(failure), &[]);
}

fn watch(epoll: &OwnedFd, descriptor: BorrowedFd<'_>, name: i32) -> Result<(), Errno> {
    let name = epoll::EventData::new_u64(name as u64);
    epoll::add(epoll, descriptor, name, epoll::EventFlags::IN)
}

fn wait_one(epoll: &OwnedFd) {
    let mut events = Vec::with_capacity(1);
    while epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), None).is_err() {}
}
