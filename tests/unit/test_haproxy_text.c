/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/haproxy_text: texts as files, what is refused, and the real haproxy's word on configurations,
 * if it is installed. */
#include "lib/haproxy_text.h"
#include "lib/shard_commands.h"
#include "lib/text.h"
#include "tests/unit/support.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct haproxy_config plain = {
    "127.0.0.1:8080",
    "/run/service/haproxy.sock",
    "/run/service/routes.map",
    HAPROXY_JSON,
    "$.model",
    "/v2/health/ready",
    NULL,
    false,
};
static const struct haproxy_server servers[] = {
    {"shard-1-0", "10.0.0.1", 8001},
    {"shard-1-1", "fd00::2", 8001},
};
static const struct haproxy_shard shards[] = {{1, NULL, servers, 2}, {12, "/health", NULL, 0}};

static void assert_text(char *got, const char *want)
{
    assert_non_null(got);
    assert_string_equal(got, want);
    free(got);
}

static void test_config(void **state)
{
    struct error err = {""};
    char *want = read_tree_file("tests/unit/serve/haproxy.cfg");

    (void)state;
    assert_text(haproxy_config_text(&plain, shards, 2, &err), want);
    free(want);
}

/* Keys that go nowhere are told from those that nobody knows, and who asks for them is counted. */
static void test_on_demand(void **state)
{
    const struct haproxy_route routes[] = {{"a", 3}, {"b", 0}};
    struct haproxy_config config = plain;
    struct error err = {""};
    char *text, **pieces;

    (void)state;
    config.on_demand = true;
    text = haproxy_config_text(&config, shards, 2, &err);
    assert_non_null(strstr(text, "    stick-table type string len 256 size 100k expire 5s\n"
                                 "    http-request return status 404 unless { var(txn.shard) -m "
                                 "found }\n"
                                 "    http-request track-sc0 var(txn.key)\n"
                                 "    http-request return status 503 hdr Retry-After 2 if { "
                                 "var(txn.shard) -m str none }\n"
                                 "    use_backend %[var(txn.shard)]\n"));
    free(text);
    assert_text(haproxy_map_text(routes, 2, &err), "a shard_3\nb none\n");
    pieces = haproxy_pieces(&config, 1, routes, 2, &err);
    assert_string_equal(pieces[0], "add map @1 /run/service/routes.map <<\na shard_3\nb none\n\n");
    strings_free(pieces);
}

static void test_commands(void **state)
{
    struct error err = {""};

    (void)state;
    assert_text(haproxy_server_command(HAPROXY_ADD, &plain, 1, &servers[1], &err),
                "add server shard_1/shard-1-1 [fd00::2]:8001 check inter 200ms fall 2 rise 1 "
                "observe layer4 error-limit 1 on-error mark-down\n");
    assert_text(haproxy_server_command(HAPROXY_ENABLE, &plain, 1, &servers[0], &err),
                "enable server shard_1/shard-1-0\n");
    assert_text(haproxy_server_command(HAPROXY_CHECK, &plain, 1, &servers[0], &err),
                "enable health shard_1/shard-1-0\n");
    assert_text(haproxy_server_command(HAPROXY_DRAIN, &plain, 1, &servers[0], &err),
                "set server shard_1/shard-1-0 state drain\n");
    assert_text(haproxy_server_command(HAPROXY_READY, &plain, 1, &servers[0], &err),
                "set server shard_1/shard-1-0 state ready\n");
    assert_text(haproxy_server_command(HAPROXY_MAINT, &plain, 1, &servers[0], &err),
                "set server shard_1/shard-1-0 state maint\n");
    assert_text(haproxy_server_command(HAPROXY_DELETE, &plain, 1, &servers[0], &err),
                "del server shard_1/shard-1-0\n");
    assert_text(haproxy_prepare(&plain, &err), "prepare map /run/service/routes.map\n");
    assert_text(haproxy_commit(&plain, 3, &err), "commit map @3 /run/service/routes.map\n");
}

/* Every route in one piece, and no piece too large, whatever the keys. */
static void test_pieces(void **state)
{
    enum { ROUTES = 10000 };
    static struct haproxy_route routes[ROUTES];
    static char keys[ROUTES][SHARD_KEY_MAX + 1];
    struct error err = {""};
    int lines = 0;
    char **pieces;

    (void)state;
    for (int i = 0; i < ROUTES; i++) {
        memset(keys[i], 'x', SHARD_KEY_MAX);
        snprintf(keys[i], sizeof(keys[i]), "tenant_%05d", i);
        if (i % 3 == 0)
            keys[i][strlen(keys[i])] = 'x'; /* of the full length */
        routes[i] = (struct haproxy_route){keys[i], 1 + i % 10000};
    }
    pieces = haproxy_pieces(&plain, 7, routes, ROUTES, &err);
    assert_non_null(pieces);
    assert_true(strings_count(pieces) > 50);
    for (char **piece = pieces; *piece != NULL; piece++) {
        size_t length = strlen(*piece);

        assert_true(length <= HAPROXY_PIECE);
        assert_int_equal(strncmp(*piece, "add map @7 /run/service/routes.map <<\n", 38), 0);
        assert_string_equal(*piece + length - 2, "\n\n");
        for (const char *c = strchr(*piece, '\n') + 1; *c != '\n'; c = strchr(c, '\n') + 1)
            lines++;
    }
    assert_int_equal(lines, ROUTES);
    strings_free(pieces);
    pieces = haproxy_pieces(&plain, 7, routes, 0, &err);
    assert_int_equal(strings_count(pieces), 0);
    strings_free(pieces);
}

static void test_answers(void **state)
{
    static const char list[] =
        "# id (file) description\n"
        "0 (/run/a.map) pattern loaded from file '/run/a.map' used by map at file 'h' line 16. "
        "curr_ver=0 next_ver=1 entry_cnt=10000\n"
        "1 (/run/ab.map) pattern loaded … curr_ver=0 next_ver=1 entry_cnt=2\n"
        "2 (/run/c.map) pattern loaded …\n\n";

    (void)state;
    assert_int_equal(haproxy_version_of("New version created: 12\n\n"), 12);
    assert_int_equal(haproxy_version_of("New version created: \n"), -1);
    assert_int_equal(haproxy_version_of("New version created: 99999999999999999999\n"), -1);
    assert_int_equal(haproxy_version_of("Unknown map identifier.\n"), -1);
    assert_int_equal(haproxy_version_of(""), -1);
    assert_int_equal(haproxy_entries_of(list, "/run/a.map"), 10000);
    assert_int_equal(haproxy_entries_of(list, "/run/ab.map"), 2);
    assert_int_equal(haproxy_entries_of(list, "/run/b.map"), -1);
    assert_int_equal(haproxy_entries_of(list, "/run/c.map"), -1);
    assert_int_equal(haproxy_entries_of("", "/run/a.map"), -1);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void test_refused(void **state)
{
    static const char *const hostile[] = {
        "",    "a b",  "a\nb", "a\"b", "a'b",  "a;b",      "a#b",  "a\\b",
        "a%b", "a{b}", "a,b",  "a$(b", "../b", "\xc3\xa4", "a\tb", NULL,
    };
    const struct haproxy_server good = {"a", "10.0.0.1", 1};

    (void)state;
    for (size_t i = 0; i < COUNT(hostile); i++) {
        const char *text = hostile[i], *given = text != NULL ? text : "no path";
        struct haproxy_config configs[] = {plain, plain, plain, plain, plain, plain, plain, plain};
        const struct haproxy_server named = {text, "10.0.0.1", 1}, at = {"a", text, 1};
        const struct haproxy_shard bad[] = {
            {1, NULL, &named, 1}, {1, NULL, &at, 1}, {1, given, &good, 1}};
        const struct haproxy_route route = {text, 1};
        struct error err = {""};

        configs[0].bind = configs[1].socket = configs[2].map = configs[3].health = text;
        configs[4].what = text;
        configs[5].by = HAPROXY_PATH, configs[5].what = text;
        configs[6].by = HAPROXY_HEADER, configs[6].what = text;
        configs[7].tokens = given;
        for (size_t c = 0; c < COUNT(configs); c++) {
            assert_null(haproxy_config_text(&configs[c], shards, 2, &err));
            assert_one_line(err.text);
            assert_null(haproxy_server_command(HAPROXY_ADD, &configs[c], 1, &good, &err));
            assert_null(haproxy_prepare(&configs[c], &err));
            assert_null(haproxy_pieces(&configs[c], 1, &route, 1, &err));
        }
        for (size_t b = 0; b < COUNT(bad); b++) {
            assert_null(haproxy_config_text(&plain, &bad[b], 1, &err));
            assert_one_line(err.text);
        }
        assert_null(haproxy_server_command(HAPROXY_ADD, &plain, 1, &named, &err));
        assert_null(haproxy_server_command(HAPROXY_ADD, &plain, 1, &at, &err));
        assert_null(haproxy_server_command(HAPROXY_DELETE, &plain, 1, &named, &err));
        assert_null(haproxy_map_text(&route, 1, &err));
        assert_one_line(err.text);
        assert_null(haproxy_pieces(&plain, 1, &route, 1, &err));
    }
}

static void test_numbers(void **state)
{
    const struct haproxy_server ports[] = {{"a", "10.0.0.1", 0}, {"a", "10.0.0.1", 65536}};
    const struct haproxy_route routes[] = {{"a", -1}, {"a", 10001}};
    struct error err;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_null(haproxy_server_command(HAPROXY_ADD, &plain, 1, &ports[i], &err));
        assert_null(haproxy_map_text(&routes[i], 1, &err));
    }
}

/* ---- the real one ---------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int haproxy_check(const char *path)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        execlp("haproxy", "haproxy", "-q", "-c", "-f", path, (char *)NULL);
        _exit(126);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_real(void **state)
{
    static const struct {
        enum haproxy_key by;
        const char *what;
    } keys[] = {
        {HAPROXY_JSON, "$.model"}, {HAPROXY_HEADER, "X-Tenant"}, {HAPROXY_PATH, "/v2/models/"}};
    static const struct haproxy_route routes[] = {{"tenant_A", 1}, {"meta/Llama-3:ft@1+x", 12}};
    char dir[] = "/tmp/test_haproxy_text.XXXXXX", path[64], map[64], sock[64], tokens[64];
    struct error err = {""};
    char *text;

    (void)state;
    if (system("command -v haproxy >/dev/null") != 0) {
        print_message("haproxy is not installed\n");
        skip();
    }
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/haproxy.cfg", dir);
    snprintf(map, sizeof(map), "%s/routes.map", dir);
    snprintf(sock, sizeof(sock), "%s/sock", dir);
    snprintf(tokens, sizeof(tokens), "%s/tokens", dir);
    write_file(tokens, "");
    text = haproxy_map_text(routes, 2, &err);
    assert_non_null(text);
    write_file(map, text);
    free(text);
    for (size_t i = 0; i < COUNT(keys); i++) {
        struct haproxy_config config = plain;

        config.map = map;
        config.socket = sock;
        config.tokens = i == 0 ? NULL : tokens;
        config.on_demand = i == 1;
        config.by = keys[i].by;
        config.what = keys[i].what;
        text = haproxy_config_text(&config, shards, 2, &err);
        assert_non_null(text);
        write_file(path, text);
        assert_int_equal(haproxy_check(path), 0);
        free(text);
    }
    write_file(path, "nonsense\n"); /* it does look */
    assert_int_not_equal(haproxy_check(path), 0);
    unlink(path);
    unlink(map);
    unlink(tokens);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config),    cmocka_unit_test(test_commands),
        cmocka_unit_test(test_pieces),    cmocka_unit_test(test_answers),
        cmocka_unit_test(test_on_demand), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_numbers),   cmocka_unit_test(test_real),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
