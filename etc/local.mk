# SPDX-License-Identifier: GPL-2.0-or-later
#
# etc/: examples for a site, installed under $(examplesdir). Those in GENERATED_EXAMPLES are made
# from NAME.in, with the directories of this installation.
dist_examples_DATA += \
    etc/elastic.conf \
    etc/grafana/slurm-elastic.json \
    etc/run-slurm-elastic.mount

GENERATED_EXAMPLES = \
    etc/plugstack.conf \
    etc/slurm.conf
examples_DATA = $(GENERATED_EXAMPLES)
CLEANFILES += $(GENERATED_EXAMPLES)
EXTRA_DIST += \
    etc/plugstack.conf.in \
    etc/slurm.conf.in

# Replaces the names of directories in what is installed.
edit_paths = sed -e 's|@pkglibexecdir[@]|$(pkglibexecdir)|g' \
    -e 's|@slurmplugindir[@]|$(slurmplugindir)|g' \
    -e 's|@bindir[@]|$(bindir)|g' -e 's|@docdir[@]|$(docdir)|g' \
    -e 's|@SLURM_SYSTEM_PLUGINDIR[@]|$(SLURM_SYSTEM_PLUGINDIR)|g' \
    -e 's|@SLURM_VERSION[@]|$(SLURM_VERSION)|g' \
    -e "s|@PLUGINDIR_LINE[@]|$$( \
        if test '$(slurmplugindir)' = '$(SLURM_SYSTEM_PLUGINDIR)'; then \
            echo '\# PluginDir need not be set: ours are in the directory of Slurm.'; \
        else echo 'PluginDir=$(slurmplugindir):$(SLURM_SYSTEM_PLUGINDIR)'; fi)|"

$(GENERATED_EXAMPLES): %: $(srcdir)/%.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(edit_paths) $(srcdir)/$@.in >$@.tmp && mv $@.tmp $@

# Manual pages name the directories of the installation, too. Workers of users cannot write what Python
# compiles; it would do so at each start. Packages do this where they are installed.
install-data-hook:
	cd "$(DESTDIR)$(man8dir)" && $(edit_paths) spank_elastic.8 >.spank_elastic.8 && \
	    chmod 644 .spank_elastic.8 && mv -f .spank_elastic.8 spank_elastic.8
	cd "$(DESTDIR)$(docdir)" && sed -i 's|(\(\.\./\.\./\)etc/elastic.conf)|(\1examples/elastic.conf)|' \
	    doc/admin/*.md
	test -n "$(DESTDIR)" || { cd "$(slurm_elasticdir)" && $(PYTHON) -m compileall -q .; } || \
	    echo "not compiled: $(slurm_elasticdir): each worker does so when it starts" >&2

# Directories of our own, once they are empty. The others are the system's.
uninstall-hook:
	rm -rf "$(DESTDIR)$(slurm_elasticdir)/__pycache__"
	for dir in "$(DESTDIR)$(prologdir)" "$(DESTDIR)$(epilogdir)" "$(DESTDIR)$(pkglibexecdir)" \
	    "$(DESTDIR)$(docdir)" "$(DESTDIR)$(pkgdatadir)" "$(DESTDIR)$(slurmplugindir)" \
	    "$(DESTDIR)$(completiondir)" "$(DESTDIR)$(datadir)/bash-completion"; do \
	    test ! -d "$$dir" || find "$$dir" -depth -type d -empty -delete; \
	done
