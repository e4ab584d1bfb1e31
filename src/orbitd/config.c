/* Owns the options of the server: one table, three sources. */
#include "orbitd/config.h"

#include <argp.h>
#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"

enum option_kind { OPTION_TEXT, OPTION_NUMBER, OPTION_BYTES, OPTION_SECONDS, OPTION_FLAG };

static const struct option_row {
  const char *name;
  const char *environment;
  const char *argument; /* NULL: a flag */
  const char *help;
  enum option_kind kind;
  size_t offset;
  uint64_t min, max;
  bool flag_only; /* not in the environment or the file */
} rows[] = {
    {"data", "ORBIT_DATA", "DIR", "data directory, made by orbitctl init", OPTION_TEXT, offsetof(struct config, data), 0, 0,
     false},
    {"listen", "ORBIT_LISTEN", "ADDR:PORT", "HTTP interface (127.0.0.1:8080)", OPTION_TEXT, offsetof(struct config, listen), 0,
     0, false},
    {"worker-listen", "ORBIT_WORKER_LISTEN", "ADDR:PORT", "worker channel (127.0.0.1:8081)", OPTION_TEXT,
     offsetof(struct config, worker_listen), 0, 0, false},
    {"worker-url", "ORBIT_WORKER_URL", "URL", "what /v1/info tells workers (made from worker-listen)", OPTION_TEXT,
     offsetof(struct config, worker_url), 0, 0, false},
    {"log-format", "ORBIT_LOG_FORMAT", "FORMAT", "auto, json or text (auto: text on a terminal)", OPTION_TEXT,
     offsetof(struct config, log_format), 0, 0, false},
    {"tls-cert", "ORBIT_TLS_CERT", "FILE", "serve TLS on both ports with this certificate and its chain (PEM)", OPTION_TEXT,
     offsetof(struct config, tls_cert), 0, 0, false},
    {"tls-key", "ORBIT_TLS_KEY", "FILE", "the certificate's private key (PEM, not encrypted); SIGHUP reads both again",
     OPTION_TEXT, offsetof(struct config, tls_key), 0, 0, false},
    {"http-threads", "ORBIT_HTTP_THREADS", "N", "threads of the HTTP interface (cores - 1)", OPTION_NUMBER,
     offsetof(struct config, http_threads), 1, 64, false},
    {"map-size", "ORBIT_MAP_SIZE", "BYTES", "address space reserved for the log, suffix K, M, G or T (256G)", OPTION_BYTES,
     offsetof(struct config, map_size), UINT64_C(64) << 20, UINT64_C(1) << 46, false},
    {"accept-future-log", "ORBIT_ACCEPT_FUTURE_LOG", NULL,
     "start although the log's last event is more than a minute ahead of the clock", OPTION_FLAG,
     offsetof(struct config, accept_future_log), 0, 0, false},
    {"allow-plain-text", "ORBIT_ALLOW_PLAIN_TEXT", NULL, "listen without TLS on addresses that are not loopback", OPTION_FLAG,
     offsetof(struct config, allow_plain_text), 0, 0, false},
    {"metrics-open", "ORBIT_METRICS_OPEN", NULL, "answer /metrics without a token", OPTION_FLAG,
     offsetof(struct config, metrics_open), 0, 0, false},
    {"checkpoint", "ORBIT_CHECKPOINT", "BOOLEAN", "keep a checkpoint in DATA/views, and start from it (true)", OPTION_FLAG,
     offsetof(struct config, checkpoint), 0, 0, false},
    {"connections-per-address", "ORBIT_CONNECTIONS_PER_ADDRESS", "N", "connections of one client address at each port (2048)",
     OPTION_NUMBER, offsetof(struct config, connections_per_address), 1, http_connections_max, false},
    {"workers-per-credential", "ORBIT_WORKERS_PER_CREDENTIAL", "N", "workers that one credential may have connected (2048)",
     OPTION_NUMBER, offsetof(struct config, workers_per_credential), 1, worker_connections_max, false},
    {"requests-per-credential", "ORBIT_REQUESTS_PER_CREDENTIAL", "N",
     "HTTP requests that one credential may have under way (2048)", OPTION_NUMBER,
     offsetof(struct config, requests_per_credential), 1, http_connections_max, false},
    {"core-dumps", "ORBIT_CORE_DUMPS", NULL, "let a crash write memory to disk, secrets with it", OPTION_FLAG,
     offsetof(struct config, core_dumps), 0, 0, false},
    {"hot-window", "ORBIT_HOT_WINDOW", "TIME", "how long ended tasks stay in memory, suffix s, m, h or d (24h)", OPTION_SECONDS,
     offsetof(struct config, hot_window), 0, UINT64_C(36500) * 86400, false},
    {"retention", "ORBIT_RETENTION", "TIME", "how long ended tasks are answered, suffix s, m, h or d; 0: for ever (30d)",
     OPTION_SECONDS, offsetof(struct config, retention), 0, UINT64_C(36500) * 86400, false},
    {"memory-max", "ORBIT_MEMORY_MAX", "BYTES",
     "ended tasks leave memory sooner while tasks and receipts take more, suffix K, M, G or T (0: no bound)", OPTION_BYTES,
     offsetof(struct config, memory_max), 0, UINT64_C(1) << 46, false},
    {"check", NULL, NULL, "judge the configuration and stop", OPTION_FLAG, offsetof(struct config, check), 0, 0, true},
    {"print-config", NULL, NULL, "print the configuration as an INI file and stop", OPTION_FLAG,
     offsetof(struct config, print_config), 0, 0, true},
};
enum { row_count = sizeof rows / sizeof rows[0], key_first = 1000, key_config = 999 };

/* A number with one letter behind it, which multiplies. */
static bool parse_number(const char *text, enum option_kind kind, uint64_t *ret_value) {
  static const struct {
    enum option_kind kind;
    char letter;
    uint64_t factor;
  } suffixes[] = {{OPTION_BYTES, 'K', UINT64_C(1) << 10},
                  {OPTION_BYTES, 'M', UINT64_C(1) << 20},
                  {OPTION_BYTES, 'G', UINT64_C(1) << 30},
                  {OPTION_BYTES, 'T', UINT64_C(1) << 40},
                  {OPTION_SECONDS, 's', 1},
                  {OPTION_SECONDS, 'm', 60},
                  {OPTION_SECONDS, 'h', 3600},
                  {OPTION_SECONDS, 'd', 86400}};
  char *end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (errno != 0 || end == text || text[0] == '-' || text[0] == '+' || text[0] == ' ') return false;
  for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0] && *end != 0; i++) {
    if (suffixes[i].kind != kind || suffixes[i].letter != *end) continue;
    if (__builtin_mul_overflow(value, suffixes[i].factor, &value)) return false;
    end++;
    break;
  }
  *ret_value = value;
  return *end == 0;
}

static bool parse_flag(const char *text, bool *ret_value) {
  static const struct {
    const char *text;
    bool value;
  } words[] = {{"true", true},   {"yes", true}, {"on", true},   {"1", true},
               {"false", false}, {"no", false}, {"off", false}, {"0", false}};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (strcmp(words[i].text, text) != 0) continue;
    *ret_value = words[i].value;
    return true;
  }
  return false;
}

/* source: "--data", "ORBIT_DATA" or "data in FILE". */
static enum status set_option(struct config *config, const struct option_row *row, const char *text, const char *source,
                              struct fault *fault) {
  char *target = (char *)config + row->offset;
  uint64_t number;
  switch (row->kind) {
    case OPTION_TEXT:
      if (strlen(text) >= config_text_bytes_max)
        return fault_set(fault, STATUS_INVALID_ARGUMENT, row->name, "%s: longer than %d bytes", source,
                         config_text_bytes_max - 1);
      (void)snprintf(target, config_text_bytes_max, "%s", text);
      return STATUS_OK;
    case OPTION_FLAG:
      if (parse_flag(text, (bool *)target)) return STATUS_OK;
      return fault_set(fault, STATUS_INVALID_ARGUMENT, row->name, "%s: \"%.64s\" is neither true nor false", source, text);
    case OPTION_NUMBER:
    case OPTION_BYTES:
    case OPTION_SECONDS:
    default:
      if (!parse_number(text, row->kind, &number) || number < row->min || number > row->max)
        return fault_set(fault, STATUS_INVALID_ARGUMENT, row->name, "%s: \"%.64s\" is no number from %" PRIu64 " to %" PRIu64,
                         source, text, row->min, row->max);
      *(uint64_t *)(void *)target = number;
      return STATUS_OK;
  }
}

/* ---- the INI file ---- */

struct file_reading {
  struct config *config;
  const char *path;
  struct fault *fault;
  enum status status;
};

static int take_entry(void *context, const char *section, const char *name, const char *value) {
  struct file_reading *reading = context;
  if (reading->status != STATUS_OK) return 1;
  for (size_t i = 0; i < row_count; i++) {
    if (section[0] != 0 || rows[i].flag_only || strcmp(rows[i].name, name) != 0) continue;
    char source[config_text_bytes_max + 64];
    (void)snprintf(source, sizeof source, "%s in %s", name, reading->path);
    reading->status = set_option(reading->config, &rows[i], value, source, reading->fault);
    return 1;
  }
  reading->status = fault_set(reading->fault, STATUS_INVALID_ARGUMENT, name, "%s: there is no option \"%.64s\"%s",
                              reading->path, name, section[0] != 0 ? " (the file has no sections)" : "");
  return 1;
}

static enum status read_file(struct config *config, const char *path, struct fault *fault) {
  struct file_reading reading = {config, path, fault, STATUS_OK};
  int line = ini_parse(path, take_entry, &reading);
  if (line == -1) return fault_set(fault, STATUS_INVALID_ARGUMENT, "config", "%s cannot be read: %s", path, strerror(errno));
  if (reading.status == STATUS_OK && line != 0)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "config", "%s:%d is not \"name = value\"", path, line);
  return reading.status;
}

static enum status read_environment(struct config *config, struct fault *fault) {
  for (size_t i = 0; i < row_count; i++) {
    const char *text = rows[i].environment != NULL ? getenv(rows[i].environment) : NULL;
    if (text == NULL) continue;
    enum status status = set_option(config, &rows[i], text, rows[i].environment, fault);
    if (status != STATUS_OK) return status;
  }
  return STATUS_OK;
}

/* ---- flags: collected first, because they win over what is read after them ---- */

struct flags {
  const char *values[row_count];
  const char *config;
};

static error_t take_flag(int key, char *argument, struct argp_state *state) {
  struct flags *flags = state->input;
  if (key == key_config) {
    flags->config = argument;
  } else if (key >= key_first && key < key_first + row_count) {
    flags->values[key - key_first] = argument != NULL ? argument : "true";
  } else if (key == ARGP_KEY_ARG) {
    argp_error(state, "unexpected argument \"%s\"", argument);
  } else {
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static void parse_flags(int argc, char **argv, struct flags *flags) {
  struct argp_option options[row_count + 2] = {
      {"config", key_config, "FILE", 0, "INI file with the same names (ORBIT_CONFIG)", 0}};
  for (int i = 0; i < row_count; i++)
    options[i + 1] = (struct argp_option){rows[i].name, key_first + i, rows[i].argument, 0, rows[i].help, 0};
  struct argp argp = {
      options,
      take_flag,
      NULL,
      "The Orbit server.\vEvery option can be given as --name, as ORBIT_NAME in the environment, or as \"name = value\" in the "
      "file of --config; the first of these wins. Exit codes: 0 done, 2 misuse, 3 could not run.",
      NULL,
      NULL,
      NULL};
  argp_err_exit_status = 2;
  (void)argp_parse(&argp, argc, argv, 0, NULL, flags);
}

enum status config_read(int argc, char **argv, struct config *ret_config, struct fault *fault) {
  struct config config = {.listen = "127.0.0.1:8080",
                          .worker_listen = "127.0.0.1:8081",
                          .log_format = "auto",
                          .map_size = log_map_bytes_default,
                          .connections_per_address = http_connections_max / 2,
                          .workers_per_credential = worker_connections_max / 2,
                          .requests_per_credential = http_connections_max / 2,
                          .hot_window = hot_window_s_default,
                          .retention = retention_s_default,
                          .checkpoint = true};
  struct flags flags = {.config = getenv("ORBIT_CONFIG")};
  parse_flags(argc, argv, &flags);
  enum status status = flags.config != NULL ? read_file(&config, flags.config, fault) : STATUS_OK;
  if (status == STATUS_OK) status = read_environment(&config, fault);
  for (size_t i = 0; i < row_count && status == STATUS_OK; i++) {
    char source[64];
    (void)snprintf(source, sizeof source, "--%s", rows[i].name);
    if (flags.values[i] != NULL) status = set_option(&config, &rows[i], flags.values[i], source, fault);
  }
  if (status != STATUS_OK) return status;
  if (config.data[0] == 0 && !config.print_config)
    return fault_set(fault, STATUS_NOT_FOUND, "data", "--data DIR is missing; orbitctl init --data DIR makes one");
  if (strcmp(config.log_format, "auto") != 0 && strcmp(config.log_format, "json") != 0 &&
      strcmp(config.log_format, "text") != 0)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "log-format", "--log-format is auto, json or text");
  if ((config.tls_cert[0] == 0) != (config.tls_key[0] == 0))
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "tls-key",
                     "--tls-cert and --tls-key come together: one of them is missing");
  if (config.memory_max != 0 && !config.checkpoint)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "memory-max", "--memory-max needs a checkpoint to leave ended tasks to");
  *ret_config = config;
  return STATUS_OK;
}

void config_print(const struct config *config) {
  for (size_t i = 0; i < row_count; i++) {
    const char *source = (const char *)config + rows[i].offset;
    if (rows[i].flag_only) continue;
    if (rows[i].kind == OPTION_TEXT) (void)printf("%s = %s\n", rows[i].name, source);
    if (rows[i].kind == OPTION_FLAG) (void)printf("%s = %s\n", rows[i].name, *(const bool *)source ? "true" : "false");
    if (rows[i].kind == OPTION_TEXT || rows[i].kind == OPTION_FLAG) continue;
    uint64_t number;
    memcpy(&number, source, sizeof number);
    if (rows[i].kind == OPTION_SECONDS) (void)printf("%s = %" PRIu64 "s\n", rows[i].name, number);
    else if (number != 0) (void)printf("%s = %" PRIu64 "\n", rows[i].name, number);
  }
}
