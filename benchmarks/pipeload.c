/*
 * pipeload: a load generator for MCP servers over pipes.
 *
 * It starts a server, shakes hands (revision 2025-06-18), sends requests as newline-delimited JSON-RPC, checks every
 * answer, and prints one line of JSON with what it measured. See usage() for the modes and options.
 *
 * It is C so that its own cost stays near the cost of the system calls: a client in Python would cost more than the
 * servers that it measures. Nothing is checked or printed between the two clock readings of a call.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READ_ROOM (256 * 1024) /* free bytes offered to each read(); a pipe holds 64 KiB */
#define REQUEST_ROOM 256       /* an add() request takes about 105 bytes */
#define EDGE 1024              /* how far from either end of a list answer its nextCursor is looked for */
#define COMPLAINTS 3           /* how many bad answers are shown */
#define FAREWELL_MS 2000       /* how long a server may take to leave once its input is closed */

/* ---------------------------------------------------------------------------------------------- what is asked for */

enum mode { COLD, SEQUENTIAL, WINDOWED, ARGUMENT, RESULT, LIST };
static const char *const MODE_NAMES[] = {"cold", "sequential", "windowed", "argument", "result", "list"};

static struct {
    enum mode mode;
    long calls;          /* measured */
    long warmup;         /* sent before, not measured */
    long window;         /* windowed: how many are in flight */
    long bytes;          /* argument, result: how large */
    long tools;          /* list: how many the server must name */
    const char *primer;  /* a tool without parameters that is called once before anything is measured */
    const char *tool;    /* cold, sequential: a tool without parameters that is called in place of add */
    int generator_cpu;   /* -1: anywhere */
    int server_cpu;
    bool urgent;         /* ask the scheduler for precedence */
    unsigned timeout;    /* seconds for everything */
    char **command;
} want = {SEQUENTIAL, 10000, 1000, 256, 10000000, 3, NULL, NULL, -1, -1, true, 60, NULL};

static void usage(void) {
    fputs("usage: pipeload [options] -- command …\n"
          "  --mode cold        until initialize is answered, and until add(a, b) is, sent right after it\n"
          "         sequential  add(a, b), one at a time\n"
          "         windowed    add(a, b), --window of them in flight\n"
          "         argument    length(text) with a text of --bytes, one at a time\n"
          "         result      blob(size) with a result of --bytes, one at a time\n"
          "         list        tools/list of --tools tools, every page, one at a time\n"
          "  --calls N  --warmup N  --window N  --bytes N  --tools N\n"
          "  --primer NAME      call this tool once before anything is measured\n"
          "  --tool NAME        cold, sequential: call this tool, without arguments, in place of add\n"
          "  --generator-cpu N  --server-cpu N\n"
          "  --polite           ask the scheduler for no precedence\n"
          "  --timeout SECONDS  for everything\n",
          stderr);
    exit(64);
}

/* ------------------------------------------------------------------------------------------------ the server's end */

static struct {
    pid_t pid;
    int in;  /* we write requests here */
    int out; /* we read answers here */
} server = {0, -1, -1};

static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("pipeload: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    if (server.pid > 0) kill(server.pid, SIGKILL);
    exit(1);
}

static void out_of_time(int signal_number) {
    (void)signal_number;
    static const char text[] = "pipeload: the server did not finish within --timeout\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) { /* nothing left to do about it */ }
    if (server.pid > 0) kill(server.pid, SIGKILL);
    _exit(1);
}

static double seconds_on(clockid_t clock) {
    struct timespec t;
    if (clock_gettime(clock, &t) != 0) return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double now(void) { return seconds_on(CLOCK_MONOTONIC); }

static double server_cpu_seconds(void) {
    clockid_t clock;
    return clock_getcpuclockid(server.pid, &clock) == 0 ? seconds_on(clock) : 0;
}

/* Kilobytes from a "Key:  123 kB" line of a /proc file, -1 if there is none. */
static long proc_kilobytes(const char *file, const char *key) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)server.pid, file);
    FILE *stream = fopen(path, "r");
    if (stream == NULL) return -1;
    long kilobytes = -1;
    size_t length = strlen(key);
    while (kilobytes < 0 && fgets(line, sizeof line, stream))
        if (strncmp(line, key, length) == 0) kilobytes = atol(line + length);
    fclose(stream);
    return kilobytes;
}

/* smaps_rollup walks the pages; the VmRSS of status is summed lazily over the CPUs and can be off by a megabyte. */
static long resident_kilobytes(void) {
    long exact = proc_kilobytes("smaps_rollup", "Rss:");
    return exact >= 0 ? exact : proc_kilobytes("status", "VmRSS:");
}

static void pin_to(int cpu) {
    if (cpu < 0) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fail("cannot run on CPU %d: %s", cpu, strerror(errno));
}

/* The server inherits this. A busy machine otherwise shows up in every figure. */
static const char *take_precedence(void) {
    if (!want.urgent) return "default";
    if (setpriority(PRIO_PROCESS, 0, -20) == 0) return "nice -20";
    return "default";
}

static void start_server(void) {
    int requests[2], answers[2];
    if (pipe2(requests, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0) fail("pipe: %s", strerror(errno));
    server.pid = fork();
    if (server.pid < 0) fail("fork: %s", strerror(errno));
    if (server.pid == 0) {
        pin_to(want.server_cpu);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever ends us, no server is left behind */
        signal(SIGPIPE, SIG_DFL);
        dup2(requests[0], STDIN_FILENO);
        dup2(answers[1], STDOUT_FILENO);
        execvp(want.command[0], want.command);
        fprintf(stderr, "pipeload: cannot run %s: %s\n", want.command[0], strerror(errno));
        _exit(127);
    }
    pin_to(want.generator_cpu);
    close(requests[0]);
    close(answers[1]);
    server.in = requests[1];
    server.out = answers[0];
}

static void end_server(void) {
    close(server.in);
    for (int waited = 0; waited < FAREWELL_MS; waited += 10) {
        if (waitpid(server.pid, NULL, WNOHANG) == server.pid) return;
        usleep(10 * 1000);
    }
    kill(server.pid, SIGKILL);
    waitpid(server.pid, NULL, 0);
}

/* ---------------------------------------------------------------------------------------------------- bytes in, out */

struct line {
    const char *at;
    size_t length; /* without the newline */
};

/* Answers are read in front of `used`; lines up to `taken` were handed out; [taken, scanned) holds no newline. */
static struct {
    char *bytes;
    size_t size, used, taken, scanned;
} inbox;

/* One read(). False: nothing there now (only when the pipe does not block). A line handed out before is gone. */
static bool receive(void) {
    if (inbox.taken > 0) {
        memmove(inbox.bytes, inbox.bytes + inbox.taken, inbox.used - inbox.taken);
        inbox.used -= inbox.taken;
        inbox.scanned -= inbox.taken;
        inbox.taken = 0;
    }
    if (inbox.size - inbox.used < READ_ROOM) {
        inbox.size = 2 * inbox.size + READ_ROOM;
        inbox.bytes = realloc(inbox.bytes, inbox.size);
        if (inbox.bytes == NULL) fail("out of memory");
    }
    for (;;) {
        ssize_t count = read(server.out, inbox.bytes + inbox.used, inbox.size - inbox.used);
        if (count > 0) {
            inbox.used += (size_t)count;
            return true;
        }
        if (count == 0) fail("the server closed its output");
        if (errno == EAGAIN) return false;
        if (errno != EINTR) fail("read: %s", strerror(errno));
    }
}

/* The next complete line that has arrived, if there is one. */
static bool next_line(struct line *line) {
    if (inbox.scanned == inbox.used) return false; /* also keeps memchr off a NULL buffer */
    char *newline = memchr(inbox.bytes + inbox.scanned, '\n', inbox.used - inbox.scanned);
    if (newline == NULL) {
        inbox.scanned = inbox.used;
        return false;
    }
    line->at = inbox.bytes + inbox.taken;
    line->length = (size_t)(newline - line->at);
    inbox.taken = inbox.scanned = (size_t)(newline - inbox.bytes) + 1;
    return true;
}

static void send_all(const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t count = write(server.in, bytes, length);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail("the server does not take requests: %s", strerror(errno));
        bytes += count;
        length -= (size_t)count;
    }
}

static void send_text(const char *text) { send_all(text, strlen(text)); }

/* ---------------------------------------------------------------------------------------------------------- answers */

static bool has(struct line line, const char *text) { return memmem(line.at, line.length, text, strlen(text)) != NULL; }

/* What follows the first `"key":`, blanks skipped, or NULL. The newline behind every line stops the scans. */
static const char *value_of(struct line line, const char *key) {
    char quoted[64];
    size_t length = (size_t)snprintf(quoted, sizeof quoted, "\"%s\"", key);
    const char *at = line.at, *end = line.at + line.length;
    while ((at = memmem(at, (size_t)(end - at), quoted, length)) != NULL) {
        at += length;
        const char *value = at + strspn(at, " ");
        if (*value == ':') return value + 1 + strspn(value + 1, " ");
    }
    return NULL;
}

static bool number_of(struct line line, const char *key, long *number) {
    const char *at = value_of(line, key);
    if (at == NULL || !(isdigit((unsigned char)*at) || *at == '-')) return false;
    *number = strtol(at, NULL, 10);
    return true;
}

/* A request's id is a number of ours; a notification has none. The id may stand behind a result of ten megabytes. */
static bool is_answer(struct line line, long *id) { return number_of(line, "id", id); }

static long bad, notices;

static void complain(struct line line, const char *what, long id) {
    if (bad++ >= COMPLAINTS) return;
    fprintf(stderr, "pipeload: request %ld: %s: %.*s\n", id, what, (int)(line.length < 400 ? line.length : 400), line.at);
}

/* The id makes the numbers differ, so that no answer can pass for another's. */
#define ADDEND 5678

static void check_sum(struct line line, long id) {
    char text[48];
    long sum;
    const char *structured = value_of(line, "structuredContent");
    struct line rest = {structured, structured ? (size_t)(line.at + line.length - structured) : 0};
    snprintf(text, sizeof text, "\"%ld\"", id + ADDEND);
    if (structured == NULL || !number_of(rest, "result", &sum) || sum != id + ADDEND)
        complain(line, "no structuredContent with the sum", id);
    else if (!has(line, text))
        complain(line, "no text with the sum", id);
}

static void check_length(struct line line, long id) {
    char text[48];
    snprintf(text, sizeof text, "\"%ld\"", want.bytes);
    if (!has(line, text)) complain(line, "not the length of the text", id);
}

static void check_blob(struct line line, long id) {
    const char *text = value_of(line, "text"); /* from its opening quote */
    long length = 0;
    while (text != NULL && text[1 + length] == 'x') length++;
    if (length != want.bytes) complain(line, "not the text that was asked for", id);
}

static long count_of(struct line line, const char *text) {
    long count = 0;
    const char *at = line.at, *end = line.at + line.length;
    while ((at = memmem(at, (size_t)(end - at), text, strlen(text))) != NULL) count++, at += strlen(text);
    return count;
}

/* --------------------------------------------------------------------------------------------------------- requests */

static long last_id;

static int write_add(char *to, size_t room, long id) {
    return snprintf(to, room,
                    "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"tools/call\",\"params\":"
                    "{\"name\":\"add\",\"arguments\":{\"a\":%ld,\"b\":%d}}}\n",
                    id, id, ADDEND);
}

static int write_named(char *to, size_t room, long id, const char *tool) {
    return snprintf(to, room,
                    "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"tools/call\",\"params\":"
                    "{\"name\":\"%s\",\"arguments\":{}}}\n",
                    id, tool);
}

static int write_blob(char *to, size_t room, long id) {
    return snprintf(to, room,
                    "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"tools/call\",\"params\":"
                    "{\"name\":\"blob\",\"arguments\":{\"size\":%ld}}}\n",
                    id, want.bytes);
}

/* Blocks until an answer is there; notifications that come before it are counted and dropped. */
static struct line await_answer(void) {
    struct line line;
    for (;;) {
        while (!next_line(&line)) receive();
        /* Looking for the id costs nothing in a short line, but milliseconds in a long one, which is no notification. */
        if (line.length > EDGE || has(line, "\"id\"")) return line;
        notices++;
    }
}

static void check_id(struct line line, long id) {
    long answered;
    if (!is_answer(line, &answered) || answered != id) complain(line, "answered with another id", id);
    if (has(line, "\"isError\":true") || has(line, "\"isError\": true")) complain(line, "the tool failed", id);
}

static double shake_hands(double started) {
    send_text("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\","
              "\"capabilities\":{},\"clientInfo\":{\"name\":\"pipeload\",\"version\":\"1\"}}}\n");
    struct line line = await_answer();
    double elapsed = now() - started;
    if (!has(line, "\"serverInfo\"") || !has(line, "2025-06-18"))
        fail("initialize was answered with %.*s", (int)line.length, line.at);
    send_text("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    return elapsed;
}

static void prime(void) {
    char request[REQUEST_ROOM];
    write_named(request, sizeof request, ++last_id, want.primer);
    send_text(request);
    check_id(await_answer(), last_id);
}

/* ------------------------------------------------------------------------------------- one call at a time, by mode */

/* Each returns how long the call took; the answer is checked after the clock has stopped. */

/* The answer to add, or to the tool of --tool, comes this long after `since`; without one, after the request. */
static double answered_after(double since) {
    char request[REQUEST_ROOM];
    last_id++;
    int length = want.tool != NULL ? write_named(request, sizeof request, last_id, want.tool)
                                   : write_add(request, sizeof request, last_id);
    double begun = since > 0 ? since : now();
    send_all(request, (size_t)length);
    struct line line = await_answer();
    double elapsed = now() - begun;
    check_id(line, last_id);
    if (want.tool == NULL) check_sum(line, last_id);
    else if (!has(line, "\"content\"")) complain(line, "no content", last_id);
    return elapsed;
}

static double call_add(void) { return answered_after(0); }

static double call_blob(void) {
    char request[REQUEST_ROOM];
    int length = write_blob(request, sizeof request, ++last_id);
    double sent = now();
    send_all(request, (size_t)length);
    struct line line = await_answer();
    double elapsed = now() - sent;
    check_id(line, last_id);
    check_blob(line, last_id);
    return elapsed;
}

/* The text is written once; each call writes its own head, of varying length, right before it. */
static double call_length(void) {
    static char *room, *text;
    static const char tail[] = "\"}}}\n";
    if (room == NULL) {
        room = malloc(REQUEST_ROOM + (size_t)want.bytes + sizeof tail);
        if (room == NULL) fail("out of memory");
        text = room + REQUEST_ROOM;
        memset(text, 'x', (size_t)want.bytes);
        memcpy(text + want.bytes, tail, sizeof tail);
    }
    char head[REQUEST_ROOM];
    int length = snprintf(head, sizeof head,
                          "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"tools/call\",\"params\":"
                          "{\"name\":\"length\",\"arguments\":{\"text\":\"",
                          ++last_id);
    memcpy(text - length, head, (size_t)length);
    double sent = now();
    send_all(text - length, (size_t)length + (size_t)want.bytes + sizeof tail - 1);
    struct line line = await_answer();
    double elapsed = now() - sent;
    check_id(line, last_id);
    check_length(line, last_id);
    return elapsed;
}

/* The cursor of the next page, or NULL. It stands before the tools or behind them, never between. */
static const char *next_cursor(struct line line) {
    size_t edge = line.length < EDGE ? line.length : EDGE;
    struct line head = {line.at, edge}, foot = {line.at + line.length - edge, edge};
    const char *cursor = value_of(foot, "nextCursor");
    if (cursor == NULL) cursor = value_of(head, "nextCursor");
    return cursor != NULL && *cursor == '"' ? cursor : NULL;
}

/* All pages. The tools are counted between the pages, with the clock stopped. */
static double call_list(void) {
    char request[REQUEST_ROOM + EDGE], cursor[EDGE] = "";
    double elapsed = 0;
    long tools = 0;
    struct line line;
    for (const char *more = cursor; more != NULL;) {
        int length = snprintf(request, sizeof request,
                              "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"tools/list\",\"params\":{%s%s}}\n", ++last_id,
                              *cursor ? "\"cursor\":" : "", cursor);
        double sent = now();
        send_all(request, (size_t)length);
        line = await_answer();
        elapsed += now() - sent;
        check_id(line, last_id);
        tools += count_of(line, "\"inputSchema\"");
        more = next_cursor(line);
        if (more != NULL) {
            size_t quoted = strcspn(more + 1, "\"") + 2;
            if (quoted >= sizeof cursor) fail("a cursor of %zu bytes", quoted);
            memcpy(cursor, more, quoted);
            cursor[quoted] = 0;
        }
    }
    if (tools != want.tools) complain(line, "not all tools were listed", last_id);
    return elapsed;
}

static void run_one_by_one(long calls, double *latencies) {
    double (*call)(void) = want.mode == ARGUMENT ? call_length
                           : want.mode == RESULT ? call_blob
                           : want.mode == LIST   ? call_list
                                                 : call_add;
    for (long i = 0; i < calls; i++) latencies[i] = call();
}

/* ------------------------------------------------------------------------------------------- many calls in flight */

/* Neither end blocks: a server that waits for us to read, while we wait for it to read, would be a deadlock of ours. */
static void run_windowed(long calls, double *latencies) {
    long slots = 1;
    while (slots < want.window * 4) slots *= 2;
    double *sent_at = calloc((size_t)slots, sizeof *sent_at); /* by id; 0: not in flight */
    char *outbox = malloc((size_t)want.window * REQUEST_ROOM);
    if (sent_at == NULL || outbox == NULL) fail("out of memory");
    size_t filled = 0, written = 0;
    long sent = 0, answered = 0;
    fcntl(server.in, F_SETFL, O_NONBLOCK);
    fcntl(server.out, F_SETFL, O_NONBLOCK);

    while (answered < calls) {
        if (written == filled) {
            written = filled = 0;
            double moment = now();
            for (; sent < calls && sent - answered < want.window; sent++) {
                /* A server that answers out of order may still hold the id that had this slot before. */
                if (sent_at[(last_id + 1) & (slots - 1)] != 0) break;
                last_id++;
                sent_at[last_id & (slots - 1)] = moment;
                filled += (size_t)write_add(outbox + filled, REQUEST_ROOM, last_id);
            }
        }
        if (written < filled) {
            ssize_t count = write(server.in, outbox + written, filled - written);
            if (count > 0) written += (size_t)count;
            else if (errno != EAGAIN && errno != EINTR) fail("the server does not take requests: %s", strerror(errno));
        }
        if (!receive()) {
            struct pollfd ends[2] = {{server.out, POLLIN, 0}, {server.in, POLLOUT, 0}};
            poll(ends, written < filled ? 2 : 1, -1);
            continue;
        }
        double moment = now();
        for (struct line line; next_line(&line);) {
            long id;
            if (!is_answer(line, &id)) {
                notices++;
                continue;
            }
            double *at = &sent_at[id & (slots - 1)];
            if (id <= last_id - slots || id > last_id || *at == 0) {
                complain(line, "not in flight, or answered twice", id);
                continue;
            }
            latencies[answered++] = moment - *at;
            *at = 0;
            check_sum(line, id);
        }
    }
    fcntl(server.in, F_SETFL, 0);
    fcntl(server.out, F_SETFL, 0);
    free(sent_at);
    free(outbox);
}

static void run(long calls, double *latencies) {
    if (want.mode == WINDOWED) run_windowed(calls, latencies);
    else run_one_by_one(calls, latencies);
}

/* ------------------------------------------------------------------------------------------------------------- main */

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static enum mode mode_named(const char *name) {
    for (size_t i = 0; i < sizeof MODE_NAMES / sizeof *MODE_NAMES; i++)
        if (strcmp(name, MODE_NAMES[i]) == 0) return (enum mode)i;
    fprintf(stderr, "pipeload: no mode is called %s\n", name);
    usage();
    return COLD;
}

static long positive(const char *text) {
    char *end;
    long number = strtol(text, &end, 10);
    if (*end != 0 || number < 0) {
        fprintf(stderr, "pipeload: not a number: %s\n", text);
        usage();
    }
    return number;
}

static void read_options(int count, char **words) {
    static const struct option options[] = {
        {"mode", required_argument, NULL, 'm'},          {"calls", required_argument, NULL, 'n'},
        {"warmup", required_argument, NULL, 'k'},        {"window", required_argument, NULL, 'w'},
        {"bytes", required_argument, NULL, 'b'},         {"tools", required_argument, NULL, 't'},
        {"primer", required_argument, NULL, 'p'},        {"tool", required_argument, NULL, 'o'},
        {"generator-cpu", required_argument, NULL, 'g'}, {"server-cpu", required_argument, NULL, 's'},
        {"polite", no_argument, NULL, 'q'},              {"timeout", required_argument, NULL, 'x'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(count, words, "+", options, NULL)) != -1;) switch (option) {
        case 'm': want.mode = mode_named(optarg); break;
        case 'n': want.calls = positive(optarg); break;
        case 'k': want.warmup = positive(optarg); break;
        case 'w': want.window = positive(optarg); break;
        case 'b': want.bytes = positive(optarg); break;
        case 't': want.tools = positive(optarg); break;
        case 'p': want.primer = optarg; break;
        case 'o': want.tool = optarg; break;
        case 'g': want.generator_cpu = (int)positive(optarg); break;
        case 's': want.server_cpu = (int)positive(optarg); break;
        case 'q': want.urgent = false; break;
        case 'x': want.timeout = (unsigned)positive(optarg); break;
        default: usage();
        }
    want.command = words + optind;
    if (want.command[0] == NULL || want.calls < 1 || want.window < 1) usage();
}

int main(int count, char **words) {
    read_options(count, words);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGALRM, out_of_time);
    alarm(want.timeout);
    const char *scheduling = take_precedence();

    double started = now();
    start_server();
    double initialized = shake_hands(started);
    printf("{\"mode\":\"%s\",\"scheduling\":\"%s\",\"initialize_ms\":%.3f", MODE_NAMES[want.mode], scheduling,
           initialized * 1e3);
    if (want.mode == COLD) {
        /* Nothing is read about the server in between: it would have that time to prepare for its first call. */
        double answered = answered_after(started);
        printf(",\"first_answer_ms\":%.3f,\"bad\":%ld}\n", answered * 1e3, bad);
        kill(server.pid, SIGKILL);
        waitpid(server.pid, NULL, 0);
        return 0;
    }

    printf(",\"rss_initialized_kb\":%ld", resident_kilobytes());
    long longest = want.calls > want.warmup ? want.calls : want.warmup;
    double *latencies = malloc((size_t)longest * sizeof *latencies);
    if (latencies == NULL) fail("out of memory");
    memset(latencies, 0, (size_t)longest * sizeof *latencies); /* no page faults while the clock runs */
    if (want.primer != NULL) prime();
    run(want.warmup, latencies);
    long rss_warm = resident_kilobytes();

    double cpu = server_cpu_seconds(), own = seconds_on(CLOCK_PROCESS_CPUTIME_ID), begun = now();
    run(want.calls, latencies);
    double wall = now() - begun, n = (double)want.calls;
    cpu = server_cpu_seconds() - cpu;
    own = seconds_on(CLOCK_PROCESS_CPUTIME_ID) - own;

    qsort(latencies, (size_t)want.calls, sizeof *latencies, by_size);
    printf(",\"calls\":%ld,\"p50_us\":%.3f,\"p99_us\":%.3f,\"min_us\":%.3f,\"calls_per_s\":%.1f", want.calls,
           latencies[want.calls / 2] * 1e6, latencies[want.calls * 99 / 100] * 1e6, latencies[0] * 1e6, n / wall);
    printf(",\"server_cpu_us\":%.3f,\"generator_cpu_us\":%.3f", cpu / n * 1e6, own / n * 1e6);
    printf(",\"rss_warm_kb\":%ld,\"rss_end_kb\":%ld,\"rss_peak_kb\":%ld", rss_warm, resident_kilobytes(),
           proc_kilobytes("status", "VmHWM:"));
    printf(",\"notices\":%ld,\"bad\":%ld}\n", notices, bad);
    end_server();
    return 0;
}
