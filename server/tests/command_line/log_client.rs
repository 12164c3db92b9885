//! Runs the commands from the run page in a shell, against a server process.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use api::run::{ClientCommands, CreatedRun, PointPage, RunDetail};

/// Timeout for operations of one or two seconds.
const PATIENCE: Duration = Duration::from_mins(1);

/// A process that is killed at the end of the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Kills the process, like a machine crash.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A server on a free local port.
struct Server {
    origin: String,
    address: String,
    running: Running,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let running = serve(folder, &address);
        let server = Self { origin: format!("http://{address}"), address, running };
        server.wait();
        server
    }

    fn restart(&mut self, folder: &Path) {
        self.running.kill();
        self.running = serve(folder, &self.address);
        self.wait();
    }

    fn wait(&self) {
        until(|| curl(&["-fsS", &format!("{}{}", self.origin, api::path::HEALTH)]).is_some());
    }

    fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> T {
        serde_json::from_str(&curl(&["-fsS", &format!("{}{path}", self.origin)]).unwrap()).unwrap()
    }

    fn opens_run(&self) -> CreatedRun {
        let url = format!("{}{}", self.origin, api::path::RUNS);
        serde_json::from_str(&curl(&["-fsS", "-d", "{}", &url]).unwrap()).unwrap()
    }

    fn bytes(&self, run: &str) -> u64 {
        self.get::<RunDetail>(&api::path::run(run)).summary.bytes
    }

    /// Imports a log as a complete file and returns the points.
    fn import(&self, log: &Path) -> PointPage {
        let file = format!("@{}", log.display());
        let url = format!("{}{}", self.origin, api::path::RUN_IMPORT);
        let run: RunDetail = serde_json::from_str(&curl(&["-fsS", "--data-binary", &file, &url]).unwrap()).unwrap();
        self.get(&api::path::run_points(&run.summary.id, 0, 5000))
    }
}

/// Returns the output of curl if it succeeds.
fn curl(arguments: &[&str]) -> Option<String> {
    let output = Command::new("curl").args(arguments).output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

fn serve(folder: &Path, address: &str) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_planscope"));
    command.args(["serve", "--address", address]).current_dir(folder).env_clear();
    Running::start(&mut command)
}

fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it did not come to be");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn is_at_hand(program: &str, argument: &str) -> bool {
    let at_hand = Command::new(program).args([argument, "exit 0"]).stdin(Stdio::null()).output().is_ok();
    if !at_hand {
        eprintln!("skipped: there is no {program} on this machine");
    }
    at_hand
}

/// Runs a command in a shell, with shorter sleeps than for users.
fn shell(folder: &Path, command: &str) -> Shell {
    let command = command.replace("sleep 5", "sleep 0.1").replace("sleep 1", "sleep 0.1");
    // A separate process group, so that all child processes are killed with it.
    let shell = Command::new("sh").args(["-c", &command]).current_dir(folder).process_group(0).spawn().unwrap();
    Shell(shell)
}

/// A shell with child processes.
struct Shell(Child);

impl Drop for Shell {
    fn drop(&mut self) {
        drop(Command::new("sh").args(["-c", &format!("kill -KILL -{}", self.0.id())]).status());
        drop(self.0.wait());
    }
}

fn step(step: u32) -> String {
    format!(
        " iteration {step:8}/     900 | elapsed time per iteration (ms): {}.5 | lm loss: 1.5E+00 |\n\
         time (ms) | forward-compute: {step}.25\n",
        2000 + step
    )
}

fn append(log: &Path, text: &str) {
    fs::OpenOptions::new().create(true).append(true).open(log).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn upload_loop_survives_server_crashes_and_file_rotation() {
    if !is_at_hand("curl", "--version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("train.log");
    let mut server = Server::start(folder.path());
    let created = server.opens_run();
    let commands = ClientCommands::new(&server.origin, &created.run, &created.ingest_token);
    let _sending = shell(folder.path(), &commands.looped);
    let mut sent = 0;
    for number in 1..=60 {
        let text = step(number);
        // This often splits the text inside a line.
        append(&log, &text[..40]);
        if number % 20 == 0 {
            server.restart(folder.path());
            // All acknowledged data can be read, and all rows are complete.
            let page: PointPage = server.get(&api::path::run_points(&created.run, 0, 5000));
            assert!(page.points.iter().all(|point| point.step_s.is_some()), "{page:?}");
        }
        append(&log, &text[40..]);
        sent += text.len() as u64;
    }
    until(|| server.bytes(&created.run) == sent);
    let imported = server.import(&log);
    assert_eq!(imported.points.len(), 60);

    // A rewritten, shorter log starts the next file.
    fs::write(&log, step(61)).unwrap();
    until(|| server.bytes(&created.run) == sent + step(61).len() as u64);
    assert!(Command::new("sh").args(["-c", &commands.finish]).status().unwrap().success());
    let detail: RunDetail = server.get(&api::path::run(&created.run));
    assert_eq!((detail.files.len(), detail.summary.state.id(), detail.summary.last_step), (2, "ended", Some(61)));
    let page: PointPage = server.get(&api::path::run_points(&created.run, 0, 5000));
    assert_eq!(page.points[..60], imported.points[..]);
}

#[test]
fn the_stream_goes_on_after_curl_was_killed() {
    if !is_at_hand("curl", "--version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("train.log");
    append(&log, &step(1));
    let server = Server::start(folder.path());
    let created = server.opens_run();
    let commands = ClientCommands::new(&server.origin, &created.run, &created.ingest_token);
    // Upload once with a curl process controlled by the test.
    let url = format!("{}{}?offset=0", server.origin, api::path::run_log(&created.run));
    let mut tail = Command::new("tail").args(["-c", "+1", "-F"]).arg(&log).stdout(Stdio::piped()).spawn().unwrap();
    let bearer = format!("Authorization: Bearer {}", created.ingest_token);
    let mut curl = Running(
        Command::new("curl")
            .args(["-sS", "-H", &bearer, "-T", "-", &url])
            .stdin(tail.stdout.take().unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let _tail = Running(tail);
    append(&log, &step(2)[..30]);
    let mut size = fs::metadata(&log).unwrap().len();
    until(|| server.bytes(&created.run) == size);
    curl.kill();
    append(&log, &step(2)[30..]);

    let _sending = shell(folder.path(), &commands.streamed);
    for number in 3..=40 {
        append(&log, &step(number));
    }
    size = fs::metadata(&log).unwrap().len();
    until(|| server.bytes(&created.run) == size);
    assert!(Command::new("sh").args(["-c", &commands.finish]).status().unwrap().success());
    let page: PointPage = server.get(&api::path::run_points(&created.run, 0, 5000));
    assert_eq!((page.points.len(), page.points == server.import(&log).points), (40, true));
}
