/* TLS on both ports of the real server, with the clients that people use: liborbit, orbitctl, curl, OpenSSL. */
#include <signal.h>
#include <time.h>

#include "api/server.h"
#include "base/guard.h"
#include "orbit.h"
#include "orbit/worker.h"
#include "support/secure.h"

static struct api_server server;
static char certificate[300], key[300]; /* what the server is told; contents come from name.crt and name.key */

static const char *at(const char *name) {
  static char path[300];
  (void)snprintf(path, sizeof path, "%s/%s", server.directory, name);
  return path;
}

static void copy(const char *from, const char *to) {
  struct bytes text = test_file_read(at(from));
  assert_non_null(text.data);
  FILE *file = fopen(to, "w");
  assert_true(file != NULL && fwrite(text.data, 1, text.size, file) == text.size && fclose(file) == 0);
  free((void *)(uintptr_t)text.data);
}

/* Puts a pair where the server looks. */
static void install(const char *name) {
  char file[64];
  (void)snprintf(file, sizeof file, "%s.crt", name);
  copy(file, certificate);
  (void)snprintf(file, sizeof file, "%s.key", name);
  copy(file, key);
}

static int setup(void **state) {
  (void)state;
  api_server_make(&server);
  certificate_make(server.directory, "one", SMALL_KEY);
  certificate_make(server.directory, "two", SMALL_KEY);
  (void)snprintf(certificate, sizeof certificate, "%s/server.crt", server.directory);
  (void)snprintf(key, sizeof key, "%s/server.key", server.directory);
  install("one");
  return 0;
}

static int teardown(void **state) {
  (void)state;
  (void)unsetenv("ORBIT_CA_FILE");
  api_server_remove(&server);
  return 0;
}

static void start(void) { api_server_start(&server, (const char *const[]){"--tls-cert", certificate, "--tls-key", key, NULL}); }

static uint16_t worker_port(void) { return (uint16_t)strtoul(strrchr(server.worker_url, ':') + 1, NULL, 10); }

static struct orbit_client *client_new(const char *authority) {
  struct orbit_client_options options = ORBIT_CLIENT_OPTIONS_INIT;
  struct orbit_client *client = NULL;
  options.url = server.url;
  options.token = server.token;
  options.ca_file = authority;
  assert_int_equal(orbit_client_new(&options, &client, NULL), ORBIT_OK);
  return client;
}

/* ---- liborbit ---- */

static enum orbit_outcome succeed(void *context, const struct orbit_assignment *assignment, struct orbit_report *report) {
  (void)context, (void)assignment;
  return orbit_report_success(report, "1", 1);
}

static struct orbit_worker *worker_start(const char *authority) {
  const char *const queues[] = {server.queue_id};
  struct orbit_worker_options options = ORBIT_WORKER_OPTIONS_INIT;
  struct orbit_worker *worker = NULL;
  options.url = server.url;
  options.token = server.token;
  options.queue_ids = queues;
  options.queue_count = 1;
  options.ca_file = authority;
  assert_int_equal(orbit_worker_new(&options, &worker, NULL), ORBIT_OK);
  assert_int_equal(orbit_worker_handle(worker, "test", "v1", succeed, NULL, NULL), ORBIT_OK);
  assert_int_equal(orbit_worker_start(worker, NULL), ORBIT_OK);
  return worker;
}

static void do_task(struct orbit_client *client, const char *operation, size_t payload_size) {
  struct orbit_task_request request = ORBIT_TASK_REQUEST_INIT;
  struct orbit_task *task = NULL;
  char *payload = guard_malloc(payload_size);
  memset(payload, 'x', payload_size);
  payload[0] = payload[payload_size - 1] = '"';
  request.queue_id = server.queue_id;
  request.handler = "test";
  request.handler_version = request.payload_version = "v1";
  request.payload = payload;
  request.payload_size = payload_size;
  request.task_timeout_ms = 60000;
  assert_int_equal(orbit_submit_task(client, operation, &request, &task, NULL), ORBIT_OK);
  char id[ORBIT_ID_SIZE];
  (void)snprintf(id, sizeof id, "%s", task->id);
  orbit_task_free(task);
  int32_t is = 0;
  do {
    assert_int_equal(orbit_get_task(client, id, &task, NULL), ORBIT_OK);
    is = task->state;
    assert_int_equal(task->payload_size, payload_size);
    orbit_task_free(task);
    api_nap();
  } while (is == ORBIT_TASK_WAITING || is == ORBIT_TASK_LEASED || is == ORBIT_TASK_RUNNING);
  assert_int_equal(is, ORBIT_TASK_SUCCEEDED);
  free(payload);
}

static void a_task_goes_through_https_and_wss(void **state) {
  (void)state;
  start();
  struct orbit_client *client = client_new(certificate);
  struct orbit_server_info *info = NULL;
  assert_int_equal(orbit_info(client, &info, NULL), ORBIT_OK);
  assert_int_equal(strncmp(info->worker_url, "wss://127.0.0.1:", 16), 0);
  orbit_server_info_free(info);
  struct orbit_worker *worker = worker_start(certificate);
  assert_int_equal(orbit_worker_wait_ready(worker, 30000, NULL), ORBIT_OK);
  do_task(client, "small", 3);
  do_task(client, "large", (size_t)document_bytes_max);
  assert_int_equal(orbit_worker_drain(worker, 30000, NULL), ORBIT_OK);
  orbit_worker_free(worker);
  orbit_client_free(client);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

/* Who is not known is not talked to: with the wrong authority, with none, and by another name than the certificate has. */
static void clients_trust_only_the_named_authority(void **state) {
  (void)state;
  start();
  struct orbit_error error;
  struct orbit_server_info *info = NULL;
  char other[300];
  (void)snprintf(other, sizeof other, "%s", at("two.crt"));
  const char *const authorities[] = {NULL, other};
  for (unsigned i = 0; i < 2; i++) {
    struct orbit_client *client = client_new(authorities[i]);
    assert_int_equal(orbit_info(client, &info, &error), ORBIT_NOT_CONNECTED);
    orbit_client_free(client);
    struct orbit_worker *worker = worker_start(authorities[i]);
    assert_int_equal(orbit_worker_wait_ready(worker, 1500, NULL), ORBIT_TIMEOUT);
    orbit_worker_free(worker);
  }
  /* The environment names it for programs that say nothing themselves. */
  assert_int_equal(setenv("ORBIT_CA_FILE", certificate, 1), 0);
  struct orbit_client *client = client_new(NULL);
  struct orbit_worker *worker = worker_start(NULL);
  assert_int_equal(orbit_worker_wait_ready(worker, 30000, NULL), ORBIT_OK);
  do_task(client, "trusted", 3);
  orbit_worker_free(worker);
  orbit_client_free(client);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

/* ---- programs ---- */

static void orbitctl_and_orbit_bench_speak_https(void **state) {
  (void)state;
  start();
  char ca[320], url[128], credentials[300], bench[512];
  (void)snprintf(ca, sizeof ca, "ORBIT_CA_FILE=%s", certificate);
  (void)snprintf(url, sizeof url, "ORBIT_URL=%s", server.url);
  (void)snprintf(credentials, sizeof credentials, "ORBIT_CREDENTIALS_FILE=%s", server.credentials);
  (void)snprintf(bench, sizeof bench, "%s", api_program("orbit-bench"));
  const struct api_run_options trusting = {.environment = (const char *const[]){ca, url, credentials, NULL}};
  const struct api_run_options doubting = {.environment = (const char *const[]){url, credentials, NULL}};
  struct api_run run;
  api_orbitctl(&trusting, &run, "queue", "list", NULL);
  if (run.code != 0) fail_msg("%s", run.err);
  assert_non_null(strstr(run.out, server.queue_id));
  api_run_clear(&run);
  api_orbitctl(&doubting, &run, "queue", "list", NULL);
  assert_int_equal(run.code, 3);
  assert_non_null(strstr(run.err, "ORBIT_CA_FILE"));
  api_run_clear(&run);
  const char *const load[] = {bench,     "lifecycle", "--url",      server.url, "--credentials", server.credentials,
                              "--tasks", "20",        "--inflight", "4",        "--workers",     "2",
                              "-o",      "jsonl",     NULL};
  api_run(load, &trusting, &run);
  if (run.code != 0) fail_msg("%s", run.err);
  assert_non_null(strstr(run.out, "\"tasks\":20"));
  api_run_clear(&run);
  api_run(load, &doubting, &run);
  assert_int_equal(run.code, 3);
  assert_non_null(strstr(run.err, "certificate verify failed"));
  api_run_clear(&run);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

/* curl offers HTTP/2, which neither port speaks. */
static void curl_gets_json_from_both_ports(void **state) {
  (void)state;
  start();
  char urls[2][200];
  static const char *const said[2] = {"200 http/1.1 {\"request_id\":", "426 http/1.1 {\"request_id\":"};
  (void)snprintf(urls[0], sizeof urls[0], "%s/healthz", server.url);
  (void)snprintf(urls[1], sizeof urls[1], "https%s", server.worker_url + 3);
  for (unsigned i = 0; i < 2; i++) {
    char command[2048], out[2048];
    (void)snprintf(command, sizeof command,
                   "curl -s -S --cacert '%s' -o '%s' -w '%%{http_code} http/%%{http_version} ' '%s' 2>&1 && cat '%s'",
                   certificate, at("body"), urls[i], at("body"));
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    out[fread(out, 1, sizeof out - 1, pipe)] = '\0';
    if (pclose(pipe) != 0 || strncmp(out, said[i], strlen(said[i])) != 0) fail_msg("%s: %s", urls[i], out);
  }
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

/* ---- versions, reloads ---- */

static void old_versions_are_refused(void **state) {
  (void)state;
  static const struct {
    int version;
    bool spoken;
  } rows[] = {{TLS1_VERSION, false}, {TLS1_1_VERSION, false}, {TLS1_2_VERSION, true}, {TLS1_3_VERSION, true}};
  start();
  for (unsigned i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
    struct secure_client client;
    bool spoken = secure_client_open(&client, i % 2 == 0 ? server.port : worker_port(), certificate, rows[i / 2].version);
    if (spoken != rows[i / 2].spoken) fail_msg("port %u, version %x: %d", i % 2, (unsigned)rows[i / 2].version, spoken);
    if (spoken) secure_client_close(&client);
  }
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

static void expect_subject(const char *name) {
  for (unsigned i = 0; i < 2; i++) {
    struct secure_client client;
    assert_true(secure_client_open(&client, i == 0 ? server.port : worker_port(), certificate, 0));
    assert_string_equal(client.subject, name);
    secure_client_close(&client);
  }
}

static bool log_says(const char *message) {
  char value[400];
  return api_log_value(&server, message, "time", value, sizeof value);
}

static void sighup_replaces_the_certificate_and_drops_nobody(void **state) {
  (void)state;
  start();
  char before[300];
  char text[4096];
  (void)snprintf(before, sizeof before, "%s", at("one.crt"));
  struct orbit_worker *worker = worker_start(before);
  assert_int_equal(orbit_worker_wait_ready(worker, 30000, NULL), ORBIT_OK);
  struct secure_client kept;
  assert_true(secure_client_open(&kept, server.port, before, 0));
  assert_string_equal(kept.subject, "one");
  expect_subject("one");

  install("two");
  assert_int_equal(kill(server.pid, SIGHUP), 0);
  api_wait(log_says("certificate read again"));
  expect_subject("two");
  secure_client_send(&kept, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  assert_true(secure_client_receive(&kept, "\"status\":\"ok\"", text, sizeof text));
  secure_client_close(&kept);
  struct orbit_client *client = client_new(certificate);
  do_task(client, "after", 3); /* by the worker that shook hands with the old one */
  struct orbit_worker_stats stats = ORBIT_WORKER_STATS_INIT;
  orbit_worker_stats(worker, &stats);
  assert_int_equal(stats.connections, 1);

  copy("one.key", key); /* not the key of this certificate: what was there stays */
  assert_int_equal(kill(server.pid, SIGHUP), 0);
  api_wait(log_says("the certificate could not be read again; the one before stays in use"));
  expect_subject("two");
  do_task(client, "still", 3);
  orbit_client_free(client);
  orbit_worker_free(worker);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

/* Some are made to last longer than Orbit's calendar: neither the start nor the signal stumbles over them. */
static void a_certificate_may_outlast_the_calendar(void **state) {
  (void)state;
  char until[400];
  const int64_t in_9999 = INT64_C(253386489600);
  certificate_make_for(server.directory, "lasting", SMALL_KEY, (int)((in_9999 - time(NULL)) / 86400));
  install("lasting");
  start();
  assert_true(api_log_value(&server, "certificate in use", "ends_at", until, sizeof until));
  assert_string_equal(until, "9998-12-31T23:59:59.999999Z");
  expect_subject("lasting");
  assert_int_equal(kill(server.pid, SIGHUP), 0);
  api_wait(log_says("certificate read again"));
  expect_subject("lasting");
  install("one");
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

/* Without a certificate the signal is no reason to end. */
static void sighup_ends_no_plain_server(void **state) {
  (void)state;
  struct http_reply reply;
  api_server_start(&server, NULL);
  http_reply_init(&reply);
  assert_int_equal(kill(server.pid, SIGHUP), 0);
  http_get(&server, NULL, "/healthz", &reply);
  http_expect(&reply, 200, NULL, NULL);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
  http_reply_clear(&reply);
}

/* ---- peers that do not finish ---- */

static void half_handshakes_hold_nobody_up(void **state) {
  enum { many = 100 };
  (void)state;
  int fds[2 * many];
  start();
  for (int i = 0; i < 2 * many; i++) {
    fds[i] = secure_client_socket(i % 2 == 0 ? server.port : worker_port());
    if (i % 4 < 2) assert_int_equal(send(fds[i], "\x16\x03\x01\x02\x00\x01", 6, MSG_NOSIGNAL), 6);
  }
  struct orbit_worker *worker = worker_start(certificate);
  assert_int_equal(orbit_worker_wait_ready(worker, 30000, NULL), ORBIT_OK);
  struct orbit_client *client = client_new(certificate);
  do_task(client, "beside", 3);
  orbit_client_free(client);
  orbit_worker_free(worker);
  for (int i = 0; i < 2 * many; i++) guard_close(&fds[i]);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

/* ---- the configuration ---- */

static void says_what_is_wrong_with_the_files(void **state) {
  (void)state;
  char two_key[300], sealed[300], empty[300], weak_crt[300], weak_key[300], directory[300];
  (void)snprintf(two_key, sizeof two_key, "%s", at("two.key"));
  (void)snprintf(sealed, sizeof sealed, "%s", at("sealed.key"));
  (void)snprintf(empty, sizeof empty, "%s", at("empty"));
  (void)snprintf(weak_crt, sizeof weak_crt, "%s", at("weak.crt"));
  (void)snprintf(weak_key, sizeof weak_key, "%s", at("weak.key"));
  (void)snprintf(directory, sizeof directory, "%s", server.directory);
  openssl_run("pkey -in '%s' -out '%s' -aes256 -passout pass:word", key, sealed);
  certificate_make(server.directory, "weak", "rsa:1024");
  FILE *file = fopen(empty, "w");
  assert_true(file != NULL && fclose(file) == 0);
  const struct {
    const char *certificate, *key, *said;
  } rows[] = {
      {certificate, NULL, "come together"},
      {NULL, key, "come together"},
      {"/no/such/file", key, "--tls-cert: /no/such/file cannot be read: No such file"},
      {certificate, "/no/such/file", "--tls-key: /no/such/file cannot be read: No such file"},
      {directory, key, "is no file"},
      {empty, key, "holds no certificate in PEM"},
      {key, key, "holds no certificate in PEM"},
      {certificate, empty, "holds no private key in PEM"},
      {certificate, certificate, "holds no private key in PEM"},
      {certificate, two_key, "does not belong to the first certificate"},
      {certificate, sealed, "is encrypted"},
      {weak_crt, weak_key, "key too small"},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const char *more[8];
    unsigned count = 0;
    struct api_run run;
    if (rows[i].certificate != NULL) more[count++] = "--tls-cert", more[count++] = rows[i].certificate;
    if (rows[i].key != NULL) more[count++] = "--tls-key", more[count++] = rows[i].key;
    more[count++] = i % 2 == 0 ? "--check" : NULL;
    more[count] = NULL;
    api_server_refused(&server, more, &run);
    if (run.code != 3 || strstr(run.err, rows[i].said) == NULL) fail_msg("row %u: %d: %s", i, run.code, run.err);
    assert_null(strstr(run.err, "PRIVATE KEY"));
    api_run_clear(&run);
  }
}

static void leaves_the_loopback_with_tls(void **state) {
  (void)state;
  struct api_run run;
  api_server_refused(&server, (const char *const[]){"--listen", "0.0.0.0:0", "--check", NULL}, &run);
  assert_int_equal(run.code, 3);
  assert_non_null(strstr(run.err, "--tls-cert"));
  assert_non_null(strstr(run.err, "--allow-plain-text"));
  api_run_clear(&run);
  api_server_start(&server, (const char *const[]){"--listen", "0.0.0.0:0", "--worker-listen", "0.0.0.0:0", "--tls-cert",
                                                  certificate, "--tls-key", key, NULL});
  struct secure_client client;
  assert_true(secure_client_open(&client, server.port, certificate, 0));
  secure_client_close(&client);
  assert_int_equal(api_server_stop(&server, SIGTERM), 0);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(a_task_goes_through_https_and_wss),
      CASE(clients_trust_only_the_named_authority),
      CASE(orbitctl_and_orbit_bench_speak_https),
      CASE(curl_gets_json_from_both_ports),
      CASE(old_versions_are_refused),
      CASE(sighup_replaces_the_certificate_and_drops_nobody),
      CASE(a_certificate_may_outlast_the_calendar),
      CASE(sighup_ends_no_plain_server),
      CASE(half_handshakes_hold_nobody_up),
      CASE(says_what_is_wrong_with_the_files),
      CASE(leaves_the_loopback_with_tls),
  };
  (void)signal(SIGPIPE, SIG_IGN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
