//! The shell scripts that dpkg's work is driven by, inside the image.
//!
//! One run does everything: starting a container is cheap, starting dpkg many times is not. The
//! text is made of names that were checked by Debian's own rules, and quoted all the same.

use super::cache::package_name;
use super::plan::Package;
use super::unpack::Facts;

/// Where packages are mounted when dpkg unpacks them itself.
pub(super) const PACKAGES: &str = "/run/ci-tool/packages";

/// Nothing is synced, because an image that is not complete is thrown away anyway.
const DPKG: &str = "dpkg --log=/dev/null --force-unsafe-io --force-confold";

/// Services are not started while packages are configured: nothing would stop them.
const BEGIN: &str = r"set -e
policy=/usr/sbin/policy-rc.d
if [ -e $policy ]; then policy=; else
  mkdir -p /usr/sbin
  printf '#!/bin/sh\nexit 101\n' > $policy
  chmod 755 $policy
fi
";

/// Leaves no trace of the run that would differ from one run to the next.
const END: &str = r#"left=$(dpkg --audit)
if [ -n "$left" ]; then echo "$left"; exit 97; fi
if [ -n "$policy" ]; then rm -f $policy; fi
rm -f /var/log/alternatives.log /var/log/dpkg.log /var/log/bootstrap.log /var/log/apt/* \
  /var/log/fontconfig.log /var/cache/ldconfig/aux-cache /var/cache/debconf/*-old \
  /var/lib/dpkg/*-old /var/lib/dpkg/lock /var/lib/dpkg/lock-frontend \
  /var/lib/dpkg/triggers/Lock /etc/.pwd.lock /var/lib/dbus/machine-id
if [ -s /etc/machine-id ]; then : > /etc/machine-id; fi
"#;

/// Ends the run when a first script diverted a file that is in place already: one of another package
/// should not be there, and one of its own must not have been moved away. The same for metadata that
/// files are to have. Directories are not what is diverted.
const CHECK_MOVED: &str = r#"[ "$overrides" = "$(cat /var/lib/dpkg/statoverride)" ] || exit 98
while read -r from && read -r to && read -r by; do
  case "$diversions" in *"$from
$to
$by"*) continue;; esac
  [ ! -d "$from" ] || continue
  case "$from" in /usr/*) other=${from#/usr};; *) other=/usr$from;; esac
  for list in $(grep -lxF -e "$from" -e "$other" /var/lib/dpkg/info/*.list); do
    name=${list##*/}; name=${name%.list}
    if [ "${name%%:*}" = "$by" ] && { [ -e "$from" ] || [ -L "$from" ]; }; then continue; fi
    echo "$by diverts $from of $name"
    exit 99
  done
done < /var/lib/dpkg/diversions
"#;

/// Configures packages that are in place already. Their first scripts were not run yet; where one of
/// them moves what is in place, dpkg must unpack by itself, and the run ends.
/// `early` ones are configured before the rest.
pub(super) fn configure(packages: &[&Facts], early: &[&Facts], fixes: &[String]) -> String {
    let mut script = BEGIN.to_owned();
    fixes.iter().for_each(|fix| {
        script.push_str(fix);
        script.push('\n');
    });
    let scripts: Vec<&&Facts> = packages.iter().filter(|facts| facts.preinst).collect();
    if !scripts.is_empty() {
        script.push_str(concat!(
            "diversions=$(cat /var/lib/dpkg/diversions)\n",
            "overrides=$(cat /var/lib/dpkg/statoverride)\n",
            "export DPKG_ADMINDIR=/var/lib/dpkg DPKG_ROOT= DPKG_MAINTSCRIPT_NAME=preinst\n",
            "export DPKG_MAINTSCRIPT_PACKAGE DPKG_MAINTSCRIPT_ARCH\n",
            "export DPKG_MAINTSCRIPT_PACKAGE_REFCOUNT=1\n",
        ));
    }
    for facts in &scripts {
        script.push_str(&format!(
            "DPKG_MAINTSCRIPT_PACKAGE={} DPKG_MAINTSCRIPT_ARCH={}\n{} install\n",
            quote(&facts.name),
            quote(&facts.architecture),
            quote(&format!("/var/lib/dpkg/info/{}.preinst", facts.info)),
        ));
    }
    if !scripts.is_empty() {
        script.push_str(concat!(
            "unset DPKG_ADMINDIR DPKG_ROOT DPKG_MAINTSCRIPT_NAME DPKG_MAINTSCRIPT_PACKAGE\n",
            "unset DPKG_MAINTSCRIPT_ARCH DPKG_MAINTSCRIPT_PACKAGE_REFCOUNT\n",
        ));
        script.push_str(CHECK_MOVED);
    }
    if !early.is_empty() {
        let names: Vec<String> = early.iter().map(|facts| quote(&facts.info)).collect();
        script.push_str(&format!("{DPKG} --configure {}\n", names.join(" ")));
    }
    script.push_str(&format!("{DPKG} --configure -a\n"));
    script.push_str(END);
    script
}

/// Lets dpkg unpack and configure packages from [`PACKAGES`].
pub(super) fn install(packages: &[Package]) -> String {
    let mut script = BEGIN.to_owned();
    for package in packages {
        if package.pre_depends {
            // What it depends on must work before it is unpacked; the rest may not be ready yet.
            script.push_str(&format!("{DPKG} --configure -a || true\n"));
        }
        let path = format!("{PACKAGES}/{}", package_name(&package.sha256));
        script.push_str(&format!("{DPKG} --unpack {}\n", quote(&path)));
    }
    script.push_str(&format!("{DPKG} --configure -a\n"));
    script.push_str(END);
    script
}

/// A command that gives a directory back the metadata it had.
pub(super) fn restore(path: &str, metadata: &store::Metadata) -> String {
    let path = quote(path);
    format!("chown {}:{} {path}; chmod {:o} {path}", metadata.uid, metadata.gid, metadata.mode)
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting() {
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("a'b"), r"'a'\''b'");
    }

    #[test]
    fn only_packages_with_a_first_script_run_one() {
        let facts = |name: &str, preinst| Facts {
            name: name.to_owned(),
            architecture: "all".to_owned(),
            info: name.to_owned(),
            stanza: String::new(),
            triggers: String::new(),
            preinst,
            files: vec![],
            brings_links: false,
            newest: 0,
        };
        let (first, second) = (facts("one", true), facts("two", false));
        let script = configure(&[&first, &second], &[], &[]);
        assert!(script.contains("'/var/lib/dpkg/info/one.preinst' install"), "{script}");
        assert!(!script.contains("two"), "{script}");
        let script = configure(&[&second], &[&second], &[]);
        assert!(!script.contains("preinst"), "{script}");
        let (early, rest) = (script.find("--configure 'two'"), script.find("--configure -a"));
        assert!(early.is_some() && early < rest, "{script}");
    }
}
