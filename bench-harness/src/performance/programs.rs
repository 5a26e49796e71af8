//! Real programs on small inputs of our own. What is not installed is named, and not measured.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mpp_workloads::driver::seed::SplitMix64;

use crate::child::Client;

/// A program with its input, ready to run.
#[derive(Clone, Debug)]
pub struct Program {
    /// The file to run.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables that make it use the C allocator, or do the same every time.
    pub environment: Vec<(String, String)>,
    /// Its standard input.
    pub input: Option<PathBuf>,
    /// Its working directory.
    pub folder: PathBuf,
    /// Who gives it work, if it is a server.
    pub client: Option<Client>,
}

/// The inputs, in one folder.
struct Inputs<'a>(&'a Path);

/// A program, or why it cannot run.
pub type Made = Result<Program, String>;

/// How one program is had.
type Make = fn(&Inputs<'_>) -> Made;

/// All programs.
const PROGRAMS: &[(&str, Make)] = &[
    ("python-objects", |inputs| inputs.python("objects.py", include_str!("../../programs/objects.py"))),
    ("python-json", |inputs| inputs.python("documents.py", include_str!("../../programs/documents.py"))),
    ("perl", |inputs| {
        inputs.script(&["perl"], "hashes.pl", include_str!("../../programs/hashes.pl"), &[("PERL_HASH_SEED", "0")])
    }),
    ("lua", |inputs| inputs.script(&["lua5.4", "lua"], "tables.lua", include_str!("../../programs/tables.lua"), &[])),
    ("ruby", |inputs| inputs.script(&["ruby"], "strings.rb", include_str!("../../programs/strings.rb"), &[])),
    ("node", |inputs| inputs.script(&["node"], "buffers.js", include_str!("../../programs/buffers.js"), &[])),
    ("sqlite3", |inputs| inputs.sqlite()),
    ("c++-containers-1", |inputs| inputs.containers("1")),
    ("c++-containers-4", |inputs| inputs.containers("4")),
    ("git-log", |inputs| inputs.git()),
    ("gcc", |inputs| inputs.compiler("gcc", "cc1", "big.c", &big_c())),
    ("g++", |inputs| inputs.compiler("g++", "cc1plus", "containers.cpp", CONTAINERS)),
    ("jq", |inputs| inputs.jq()),
    ("redis", |inputs| inputs.redis()),
];

/// Eight million short lives: the worst that can happen to what watches every call.
///
/// # Errors
/// When there is no C compiler.
pub fn mallocs(folder: &Path) -> Made {
    let inputs = Inputs(folder);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    inputs.compiled("mallocs.c", include_str!("../../programs/mallocs.c"), "cc", &["-O2", "-g"], &[])
}

/// The C++ program.
const CONTAINERS: &str = include_str!("../../programs/containers.cpp");

/// The programs whose name is `wanted`, each with its input, or with the reason why it cannot run. Inputs are written into
/// `folder`.
#[must_use]
pub fn programs(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<(&'static str, Made)> {
    let inputs = Inputs(folder);
    let made = |make: Make| match fs::create_dir_all(folder) {
        Ok(()) => make(&inputs),
        Err(error) => Err(format!("{}: {error}", folder.display())),
    };
    PROGRAMS.iter().filter(|(name, _)| wanted(name)).map(|&(name, make)| (name, made(make))).collect()
}

/// Finds a program in `PATH`.
fn find(name: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| format!("{name} is not installed"))
}

/// What a command prints, in one line.
fn ask(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let words = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && !words.is_empty() { Ok(words) } else { Err(format!("{command:?} gave no answer")) }
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

impl Inputs<'_> {
    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    fn program(&self, program: PathBuf, arguments: &[&str]) -> Program {
        let (arguments, folder) = (strings(arguments), self.0.to_owned());
        Program { program, arguments, environment: vec![], input: None, folder, client: None }
    }

    /// A script under the first of `interpreters` that is installed.
    fn script(&self, interpreters: &[&str], name: &str, text: &str, environment: &[(&str, &str)]) -> Made {
        let found = interpreters.iter().find_map(|name| find(name).ok());
        let interpreter = found.ok_or_else(|| format!("{} is not installed", interpreters.join(" or ")))?;
        self.write(name, text)?;
        let environment = environment.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        Ok(Program { environment, ..self.program(interpreter, &[name]) })
    }

    /// Python has an allocator of its own for small objects, which must step aside. `python3` may be a script that looks for the
    /// real one.
    fn python(&self, name: &str, text: &str) -> Made {
        let real = ask(Command::new(find("python3")?).args(["-c", "import sys; print(sys.executable)"]))?;
        let program = self.script(&["python3"], name, text, &[("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0")])?;
        Ok(Program { program: real.into(), ..program })
    }

    fn sqlite(&self) -> Made {
        let program = self.program(find("sqlite3")?, &[":memory:"]);
        Ok(Program { input: Some(self.write("queries.sql", include_str!("../../programs/queries.sql"))?), ..program })
    }

    fn containers(&self, threads: &str) -> Made {
        let options = ["-O2", "-std=c++17", "-fsized-deallocation"];
        self.compiled("containers.cpp", CONTAINERS, "c++", &options, &[threads])
    }

    /// A program of ours, compiled with threads.
    fn compiled(&self, name: &str, text: &str, compiler: &str, options: &[&str], arguments: &[&str]) -> Made {
        let source = self.write(name, text)?;
        let program = source.with_extension("");
        let mut compile = Command::new(find(compiler)?);
        compile.args(options).arg("-pthread").arg(&source).arg("-o").arg(&program);
        match compile.status() {
            Ok(status) if status.success() => Ok(self.program(program, arguments)),
            Ok(status) => Err(format!("{compiler} on {name}: {status}")),
            Err(error) => Err(format!("{compiler}: {error}")),
        }
    }

    /// The compiler proper: the driver would only start it.
    fn compiler(&self, driver: &str, proper: &str, name: &str, text: &str) -> Made {
        let program = ask(Command::new(find(driver)?).arg(format!("-print-prog-name={proper}")))?;
        self.write(name, text)?;
        let mut arguments = vec!["-quiet", "-w", "-O1", name, "-o", "/dev/null"];
        let architecture = ask(Command::new(find(driver)?).arg("-print-multiarch")).unwrap_or_default();
        if !architecture.is_empty() {
            arguments.extend(["-imultiarch", &architecture]);
        }
        if proper == "cc1plus" {
            arguments.extend(["-std=c++17", "-D_GNU_SOURCE"]);
        }
        Ok(self.program(program.into(), &arguments))
    }

    /// A repository that is made here: 150 commits to 40 files.
    fn git(&self) -> Made {
        let git = find("git")?;
        let repository = self.0.join("history.git");
        if !repository.exists() {
            let stream = self.write("history", &history())?;
            let run = |arguments: &[&str], input: Option<&Path>| {
                let mut command = Command::new(&git);
                command.args(arguments);
                if let Some(path) = input {
                    command.stdin(fs::File::open(path).map_err(|error| error.to_string())?);
                }
                match command.output() {
                    Ok(output) if output.status.success() => Ok(()),
                    Ok(output) => Err(format!("git: {}", String::from_utf8_lossy(&output.stderr).trim())),
                    Err(error) => Err(format!("git: {error}")),
                }
            };
            let folder = repository.display().to_string();
            run(&["init", "--quiet", "--bare", &folder], None)?;
            run(&["--git-dir", &folder, "fast-import", "--quiet"], Some(&stream))?;
        }
        Ok(self.program(git, &["--git-dir", "history.git", "log", "-p", "--stat", "--all"]))
    }

    fn jq(&self) -> Made {
        let program = self.program(
            find("jq")?,
            &["-c", "[.[] | {a: .id, b: (.name + \"x\"), c: [.tags[] | ascii_upcase]}] | length"],
        );
        Ok(Program { input: Some(self.write("people.json", &people())?), ..program })
    }

    fn redis(&self) -> Made {
        let (server, client) = (find("redis-server")?, find("redis-benchmark")?);
        // A socket's path may have some hundred bytes only, so it is not in the inputs' folder.
        let socket = std::env::temp_dir().join(format!("mpp-redis-{}", std::process::id()));
        let path = socket.display().to_string();
        let program = self.program(server, &["--port", "0", "--unixsocket", &path, "--save", "", "--appendonly", "no"]);
        let load = "-s PATH -r 40000 -n 40000 -q -P 16 -d 120 -t set,lpush,hset,lrange_100";
        let arguments =
            load.split(' ').map(|word| if word == "PATH" { path.clone() } else { word.to_owned() }).collect();
        Ok(Program { client: Some(Client { socket, program: client, arguments }), ..program })
    }
}

/// A C file with many small functions.
fn big_c() -> String {
    let mut text = "typedef struct { int a, b; char name[32]; } item;\nint printf(const char *, ...);\n".to_owned();
    for i in 0..700 {
        let (a, b) = (i * 7 % 13, i % 5 + 1);
        let _ = writeln!(
            text,
            "int f{i}(item *x, int n) {{ int s = {a}; for (int i = 0; i < n; i++) {{ if (x[i].a > {b}) s += x[i].b * {b}; \
             else s -= x[i].name[i & 31]; switch (s & 3) {{ case 0: s ^= {i}; break; case 1: s += n; break; default: s--; }} }} return s; }}"
        );
    }
    text.push_str("int main(void) { item x[4] = {{1, 2, \"a\"}}; int s = 0;\n");
    for i in 0..700 {
        let _ = writeln!(text, "  s += f{i}(x, 4);");
    }
    text + "  printf(\"%d\\n\", s); return 0; }\n"
}

/// A stream for `git fast-import`.
fn history() -> String {
    let mut random = SplitMix64::new(5);
    let mut files: Vec<Vec<String>> = (0..40)
        .map(|file| (0..200).map(|line| format!("line {line} of file {file}: {:x}", random.next_u64())).collect())
        .collect();
    let mut text = String::new();
    for commit in 0..150u64 {
        let message = format!("commit {commit}: change some lines\n");
        let _ = write!(
            text,
            "commit refs/heads/main\ncommitter A <a@example.org> {} +0000\n",
            1_000_000_000 + commit * 3600
        );
        let _ = write!(text, "data {}\n{message}", message.len());
        for _ in 0..6 {
            let number = random.below(40) as usize;
            for _ in 0..10 {
                let line = random.below(200) as usize;
                files[number][line] = format!("line {line}, changed in commit {commit}: {:x}", random.next_u64());
            }
            let content = files[number].join("\n") + "\n";
            let _ = write!(
                text,
                "M 100644 inline folder{}/file{number}.txt\ndata {}\n{content}\n",
                number % 5,
                content.len()
            );
        }
    }
    text
}

/// A list of objects.
fn people() -> String {
    let mut random = SplitMix64::new(6);
    let people = (0..12_000).map(|id| {
        let tags: Vec<_> = (0..5).map(|_| format!("\"tag {:x}\"", random.next_u64())).collect();
        format!("{{\"id\": {id}, \"name\": \"person {id}\", \"tags\": [{}]}}", tags.join(", "))
    });
    format!("[{}]", people.collect::<Vec<_>>().join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_the_same_every_time_and_missing_programs_are_named() {
        assert_eq!((history(), people(), big_c()), (history(), people(), big_c()));
        assert!(serde_json::from_str::<serde_json::Value>(&people()).is_ok());
        assert_eq!(find("no-such-program").unwrap_err(), "no-such-program is not installed");
        let folder = tempfile::tempdir().unwrap();
        let missing = Inputs(folder.path()).script(&["no-such", "neither-this"], "x", "", &[]);
        assert_eq!(missing.unwrap_err(), "no-such or neither-this is not installed");
    }
}
