#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What holds for the installed programs, libraries and plugins.

load helpers

needed() {
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}

@test "spank_elastic.so exports SPANK's entries only" {
    file=$(installed spank_elastic.so)
    exports "$file" | grep -qx slurm_spank_init
    nothing "$(exports "$file" | grep -vE '^(slurm_spank_[a-z_]+|plugin_(name|type|version))$')" \
        "exported too"
    exports "$file" | grep -qx plugin_name
}

@test "job_submit_elastic.so exports job_submit's entries only" {
    if ! file=$(installed job_submit_elastic.so); then
        grep -qx "HAVE_SLURM_SOURCE_TRUE='#'" "$top_builddir/config.log"
        skip "not built without the Slurm source"
    fi
    run -0 exports "$file"
    [ "$output" = "$(printf '%s\n' fini init job_modify job_submit plugin_name plugin_type plugin_version)" ]
}

@test "select_elastic_cons_tres.so exports the same as select_cons_tres.so must, and nothing else" {
    if ! file=$(installed select_elastic_cons_tres.so); then
        grep -qx "HAVE_SLURM_SOURCE_TRUE='#'" "$top_builddir/config.log"
        skip "not built without the Slurm source"
    fi
    nothing "$(exports "$file" | grep -vE '^(fini|init|plugin_(id|name|type|version)|select_p_[a-z_]+)$')" "exported too"
    stock=$(find /usr/lib* -name select_cons_tres.so -print -quit)
    diff <(exports "$file" | grep select_p_) <(exports "$stock" | grep select_p_)
    # Data is bound when a command of Slurm loads it, which has none of slurmctld's.
    nothing "$(nm -D --undefined-only "$file" | awk '$1 == "U" { print $2 }' |
        grep -xE 'job_list|idle_node_bitmap|switch_record_(table|cnt)|node_record_(table_ptr|count)|slurm_conf')" "not weak"
}

@test "libelastic.so exports what elastic.h declares, and needs libc only" {
    file=$(installed libelastic.so.0)
    declared=$(grep -oE '\belastic_[a-z0-9_]+\(' "$(installed elastic.h)" | tr -d '(' | sort -u)
    [ -n "$declared" ]
    diff <(exports "$file") <(printf '%s\n' "$declared")
    nothing "$(needed "$file" | grep -vE '^(libc|ld-linux[-a-z0-9_]*)\.so')" "needs too"
}

@test "libelastic-shield.so exports functions of libc that install handlers, and needs libc only" {
    file=$(installed libelastic-shield.so)
    [ "$(exports "$file" | paste -s -d' ')" = "$(printf '%s\n' __sysv_signal bsd_signal sigaction sigignore \
        siginterrupt signal sigset ssignal sysv_signal | sort | paste -s -d' ')" ]
    nothing "$(needed "$file" | grep -vE '^(libc|ld-linux[-a-z0-9_]*)\.so')" "needs too"
}

@test "elastic.h compiles alone, as C99 and as C++" {
    header=$(installed elastic.h)
    gcc -std=c99 -Wall -Wextra -Werror -pedantic -x c -fsyntax-only "$header"
    if command -v g++ >/dev/null; then
        g++ -Wall -Wextra -Werror -x c++ -fsyntax-only "$header"
    fi
}

@test "pkg-config says how a program is linked with libelastic" {
    local -a flags
    PKG_CONFIG_PATH=$(dirname "$(installed libelastic.pc)")
    export PKG_CONFIG_PATH
    read -ra flags < <(pkg-config --cflags --libs libelastic)
    gcc -o "$BATS_TEST_TMPDIR/worlds" "$top_srcdir/examples/worlds/worlds.c" "${flags[@]}"
    needed "$BATS_TEST_TMPDIR/worlds" | grep -qxF libelastic.so.0
    [ "$(pkg-config --modversion libelastic)" = "$(sed -n 's/^PACKAGE_VERSION = //p' "$top_builddir/Makefile")" ]
}

@test "plugins bind lazily, programs at once" {
    for name in spank_elastic.so job_submit_elastic.so select_elastic_cons_tres.so; do
        if file=$(installed $name 2>/dev/null); then
            run ! grep -q NOW <(readelf -d "$file")
        fi
    done
    for name in elasticrun selastic; do
        readelf -d "$prefix/bin/$name" | grep -q BIND_NOW
    done
}

@test "what starts often loads libcurl, with 27 more libraries, when it needs it; a program of the package names it" {
    for file in "$prefix"/{bin/elasticrun,libexec/slurm-elastic/elastic-{fit,state}}; do
        nothing "$(needed "$file" | grep curl)" "$file needs"
        nothing "$(exports "$file" | grep '^curl_')" "$file exports"
        strings -a "$file" | grep -qxF libcurl.so.4
    done
    needed "$prefix/libexec/slurm-elastic/elastic-notice" | grep -qxF libcurl.so.4
}

@test "plugins have all functions of ours that they call" {
    nm "$top_builddir"/{lib/libelasticcore.a,common/libelasticcommon.a} 2>/dev/null |
        awk '$2 == "T" { print $3 }' | sort -u >"$BATS_TEST_TMPDIR/ours"
    (($(wc -l <"$BATS_TEST_TMPDIR/ours") > 500))
    for plugin in "$top_builddir"/{spank,plugins/job_submit,plugins/select}/.libs/*.so; do
        [[ -e $plugin ]] || continue
        nm -D --undefined-only "$plugin" | awk '{ print $2 }' | sort -u | comm -12 - "$BATS_TEST_TMPDIR/ours"
    done >"$BATS_TEST_TMPDIR/missing"
    cat "$BATS_TEST_TMPDIR/missing"
    [[ ! -s $BATS_TEST_TMPDIR/missing ]]
}

@test "plugins need none of the libraries that a daemon of Slurm should not load" {
    for name in spank_elastic.so job_submit_elastic.so select_elastic_cons_tres.so; do
        if file=$(installed $name 2>/dev/null); then
            nothing "$(needed "$file" | grep -E 'slurm|pmix|curl|libuv|hwloc|python')" "$name needs"
        fi
    done
}

@test "plugins name the libraries that they call" {
    for name in spank_elastic.so job_submit_elastic.so select_elastic_cons_tres.so; do
        if file=$(installed $name 2>/dev/null); then
            nm -D --undefined-only "$file" | grep -q ' json_object_'
            needed "$file" | grep -q '^libjson-c\.'
        fi
    done
    file=$(installed spank_elastic.so)
    nm -D --undefined-only "$file" | grep -q ' yaml_'
    needed "$file" | grep -q '^libyaml-'
}

@test "no directory of the build is left in what is installed" {
    found=$(find "$prefix" -type f ! -name '*.la' | while read -r file; do
        copy=$BATS_TEST_TMPDIR/copy
        # Debug information names the sources, and is meant to.
        strip --strip-debug -o "$copy" "$file" 2>/dev/null || cp "$file" "$copy"
        if strings -a "$copy" | grep -F "$top_srcdir" | grep -vqF "$prefix"; then
            echo "$file: $(strings -a "$copy" | grep -F "$top_srcdir" | grep -vF "$prefix" | head -n 1)"
        fi
    done)
    nothing "$found" "paths of the build"
}

@test "the Python package is installed with what Python compiles" {
    dir=$(dirname "$(installed live.py)")
    diff <(find "$dir" -name '*.py' -printf '%f\n' | sort) \
        <(find "$dir/__pycache__" -name '*.pyc' -printf '%f\n' | sed 's/\.cpython-[0-9]*\.pyc$/.py/' | sort)
}

@test "make install DESTDIR= stays below it" {
    make -s -C "$top_builddir" install DESTDIR="$BATS_TEST_TMPDIR/dest" >/dev/null
    # Packages compile Python where they are installed.
    [ "$(find "$BATS_TEST_TMPDIR/dest" -type f | wc -l)" -eq "$(find "$prefix" -type f ! -path '*/__pycache__/*' | wc -l)" ]
    nothing "$(find "$BATS_TEST_TMPDIR/dest" -type f ! -path "$BATS_TEST_TMPDIR/dest$prefix/*")" \
        "installed elsewhere"
}
