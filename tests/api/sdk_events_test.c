/* liborbit and the feed, against the real server: readers that are killed and go on miss nothing while tasks run, five hundred
 * readers at once, subscriptions, and waiting for a task. ORBIT_FEED_TASKS=10000 makes the first a long one. */
#include "api/sdk_stage.h"

enum { tasks_default = 150, batch_size = 50, readers = 500 };
static const char results[] = "task.succeeded,task.failed,task.cancelled,task.review_required,task.reviewed";

/* ---- Readers that are killed ---- */

/* A reader in a process of its own: writes each position that it has handled to the file. With a subscription it asks that
 * where to go on; else it goes on behind the last line of the file. Runs until it is killed. */
struct victim {
  const struct stage *stage;
  char file[600];
  char subscription[ORBIT_ID_SIZE]; /* "": none */
  uint64_t seed;
};

static uint64_t last_line(const char *path) {
  struct bytes text = test_file_read(path);
  uint64_t last = 0;
  for (size_t at = 0; at < text.size;) {
    const uint8_t *end = memchr(text.data + at, '\n', text.size - at);
    if (end == NULL) break;
    last = strtoull((const char *)text.data + at, NULL, 10);
    at = (size_t)(end - text.data) + 1;
  }
  free((void *)(uintptr_t)text.data);
  return last;
}

static int next_page(struct orbit_client *client, const struct victim *victim, uint64_t after, uint32_t limit,
                     struct orbit_event_page **ret_page) {
  struct orbit_event_filter filter = ORBIT_EVENT_FILTER_INIT;
  filter.types = results;
  if (victim->subscription[0] != 0) return orbit_subscription_next(client, victim->subscription, limit, 300, ret_page, NULL);
  return orbit_events_next(client, &filter, after, limit, 300, ret_page, NULL);
}

static void acknowledge(struct orbit_client *client, const struct victim *victim, uint64_t position) {
  char key[ORBIT_ID_SIZE];
  struct orbit_subscription *subscription = NULL;
  if (victim->subscription[0] == 0 || position == 0) return;
  if (orbit_random_id(key) == ORBIT_OK)
    (void)orbit_subscription_ack(client, key, victim->subscription, position, &subscription, NULL);
  orbit_subscription_free(subscription);
}

static _Noreturn void victim_main(const struct victim *victim) {
  struct orbit_client_options options = ORBIT_CLIENT_OPTIONS_INIT;
  struct orbit_client *client;
  uint64_t random = victim->seed, after = last_line(victim->file);
  int fd = open(victim->file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  options.url = victim->stage->credentials->url;
  options.token = victim->stage->credentials->token;
  if (fd < 0 || orbit_client_new(&options, &client, NULL) != ORBIT_OK) _exit(1);
  for (;;) {
    struct orbit_event_page *page = NULL;
    if (next_page(client, victim, after, 1 + (uint32_t)(test_random(&random) % 7), &page) != ORBIT_OK) continue;
    for (size_t i = 0; i < page->count; i++) {
      char line[24];
      int size = snprintf(line, sizeof line, "%llu\n", (unsigned long long)page->items[i]->position);
      if (write(fd, line, (size_t)size) != size) _exit(1);
    }
    after = page->next_position;
    acknowledge(client, victim, page->next_position);
    orbit_event_page_free(page);
  }
}

/* Lets the reader live for a random while, kills it, and starts it anew, until it is killed itself. */
static _Noreturn void keep_killing(struct victim *victim) {
  uint64_t random = victim->seed;
  for (;;) {
    victim->seed = test_random(&random);
    pid_t pid = fork();
    if (pid == 0) victim_main(victim);
    if (pid < 0) _exit(1);
    pause_ms((long)(20 + test_random(&random) % 400));
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0) continue;
  }
}

static pid_t victim_start(struct victim *victim) {
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid != 0) return pid;
  (void)setpgid(0, 0);
  keep_killing(victim);
}

/* The positions of all results, from one reading at rest; owned. */
static uint64_t *read_truth(struct stage *stage, size_t *ret_count) {
  struct orbit_event_filter filter = ORBIT_EVENT_FILTER_INIT;
  uint64_t *truth = NULL, after = 0;
  size_t count = 0;
  filter.types = results;
  for (bool end = false; !end;) {
    struct orbit_event_page *page;
    assert_int_equal(orbit_events_next(stage->client, &filter, after, 100, 0, &page, NULL), ORBIT_OK);
    truth = realloc(truth, (count + page->count + 1) * sizeof *truth);
    assert_non_null(truth);
    for (size_t i = 0; i < page->count; i++) truth[count++] = page->items[i]->position;
    end = page->next_position == after;
    after = page->next_position;
    orbit_event_page_free(page);
  }
  *ret_count = count;
  return truth;
}

/* Whatever came twice: what came for the first time came in order, and all of it. */
static void expect_nothing_missing(const struct victim *victim, const uint64_t *truth, size_t count, bool may_repeat) {
  struct bytes text = test_file_read(victim->file);
  size_t next = 0, lines = 0;
  uint64_t highest = 0;
  for (size_t at = 0; at < text.size; lines++) {
    uint64_t position = strtoull((const char *)text.data + at, NULL, 10);
    const uint8_t *end = memchr(text.data + at, '\n', text.size - at);
    assert_non_null(end);
    at = (size_t)(end - text.data) + 1;
    if (position <= highest) {
      assert_true(may_repeat);
      continue;
    }
    assert_true(next < count);
    assert_int_equal(position, truth[next++]);
    highest = position;
  }
  assert_int_equal(next, count);
  assert_true(lines >= count);
  free((void *)(uintptr_t)text.data);
}

static void submit_some(struct stage *stage, unsigned first, unsigned count) {
  struct orbit_submission submissions[batch_size];
  char keys[batch_size][32];
  struct orbit_submission_answer_list *answers;
  struct orbit_task_request request = ORBIT_TASK_REQUEST_INIT;
  request.queue_id = stage->credentials->queue_id;
  request.handler = "test";
  request.handler_version = stage->version;
  request.payload_version = "v1";
  request.payload = "1";
  request.payload_size = 1;
  request.task_timeout_ms = 600000;
  for (unsigned i = 0; i < count; i++) {
    (void)snprintf(keys[i], sizeof keys[i], "t%u", first + i);
    submissions[i] = (struct orbit_submission){keys[i], &request};
  }
  assert_int_equal(orbit_submit_tasks(stage->client, submissions, count, &answers, NULL), ORBIT_OK);
  for (unsigned i = 0; i < count; i++) assert_non_null(answers->items[i]->task);
  orbit_submission_answer_list_free(answers);
}

static void killed_readers_miss_nothing(void **state) {
  struct stage *stage = stage_new();
  struct victim victims[2] = {{.stage = stage}, {.stage = stage}};
  struct orbit_subscription_request request = ORBIT_SUBSCRIPTION_REQUEST_INIT;
  struct orbit_subscription *subscription;
  const char *const types[] = {"task.succeeded", "task.failed", "task.cancelled", "task.review_required", "task.reviewed"};
  const char *wanted = getenv("ORBIT_FEED_TASKS");
  unsigned tasks = wanted != NULL ? (unsigned)strtoul(wanted, NULL, 10) : tasks_default;
  pid_t pids[2];
  uint64_t seed = test_seed();
  (void)state;
  stage_open(stage, SUCCEED);
  request.name = "victim";
  request.from = "earliest";
  request.types = types;
  request.type_count = 5;
  assert_int_equal(orbit_subscription_create(stage->client, "s", &request, &subscription, NULL), ORBIT_OK);
  (void)snprintf(victims[1].subscription, sizeof victims[1].subscription, "%s", subscription->id);
  orbit_subscription_free(subscription);
  for (unsigned i = 0; i < 2; i++) { /* before there are threads */
    victims[i].seed = test_random(&seed);
    (void)snprintf(victims[i].file, sizeof victims[i].file, "%s/victim%u", stage->server.directory, i);
    pids[i] = victim_start(&victims[i]);
  }
  const char *const queue_ids[] = {stage->credentials->queue_id};
  struct orbit_worker_options options = options_make(stage, queue_ids);
  options.capacity = 16;
  worker_start(stage, &options);
  for (unsigned first = 0; first < tasks; first += batch_size)
    submit_some(stage, first, tasks - first < batch_size ? tasks - first : batch_size);
  wait_for(stats_of(stage).confirmed >= tasks);
  size_t count;
  uint64_t *truth = read_truth(stage, &count);
  assert_int_equal(count, tasks);
  for (unsigned i = 0; i < 2; i++) wait_for(last_line(victims[i].file) == truth[count - 1]);
  for (unsigned i = 0; i < 2; i++) {
    (void)kill(-pids[i], SIGKILL);
    while (waitpid(pids[i], NULL, 0) < 0) continue;
    expect_nothing_missing(&victims[i], truth, count, i == 1);
  }
  free(truth);
  stage_down(stage);
}

/* ---- Many at once ---- */

static int connect_to(const struct stage *stage) {
  const char *port = strrchr(stage->server.url, ':');
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10))};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

/* Half of them pages that wait, half of them streams: each hears of the one task that comes, and of nothing before. */
static void five_hundred_readers_hear_of_it(void **state) {
  struct stage *stage = stage_new();
  struct orbit_server_info *info;
  static int fds[readers];
  char text[512], id[ORBIT_ID_SIZE], answer[8192];
  (void)state;
  stage_open(stage, SUCCEED);
  assert_int_equal(orbit_info(stage->client, &info, NULL), ORBIT_OK);
  for (unsigned i = 0; i < readers; i++) {
    int size =
        snprintf(text, sizeof text,
                 "GET /v1/events?types=task.accepted&after=%llu&wait_ms=30000 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "
                 "%s\r\nAccept: %s\r\n\r\n",
                 (unsigned long long)info->log_position, stage->credentials->token,
                 i % 2 == 0 ? "application/json" : "text/event-stream");
    fds[i] = connect_to(stage);
    assert_int_equal(send(fds[i], text, (size_t)size, MSG_NOSIGNAL), size);
  }
  orbit_server_info_free(info);
  submit(stage, 0, id);
  for (unsigned i = 0; i < readers; i++) {
    size_t size = 0;
    do {
      struct pollfd polled = {.fd = fds[i], .events = POLLIN};
      assert_int_equal(poll(&polled, 1, wait_ms_max), 1);
      ssize_t got = recv(fds[i], answer + size, sizeof answer - 1 - size, 0);
      assert_true(got > 0);
      size += (size_t)got;
      answer[size] = '\0';
    } while (strstr(answer, id) == NULL);
    assert_null(strstr(answer, "\"items\":[]"));
    (void)close(fds[i]);
  }
  stage_down(stage);
}

/* ---- Subscriptions ---- */

static void a_subscription_goes_round(void **state) {
  struct stage *stage = stage_new();
  struct orbit_subscription_request request = ORBIT_SUBSCRIPTION_REQUEST_INIT;
  struct orbit_subscription *made, *other;
  struct orbit_subscription_list *list;
  struct orbit_event_page *page;
  struct orbit_error error;
  char id[ORBIT_ID_SIZE];
  const char *const types[] = {"task.accepted"};
  (void)state;
  stage_open(stage, SUCCEED);
  request.name = "r\u00e9sum\u00e9";
  request.types = types;
  request.type_count = 1;
  request.queue_id = stage->credentials->queue_id;
  assert_int_equal(orbit_subscription_create(stage->client, "s", &request, &made, &error), ORBIT_OK);
  assert_string_equal(made->name, "r\u00e9sum\u00e9");
  assert_true(made->type_count == 1 && strcmp(made->types[0], "task.accepted") == 0 && made->task_id == NULL);
  assert_int_equal(orbit_subscription_create(stage->client, "again", &request, &other, &error), ORBIT_REFUSED);
  assert_string_equal(error.field, "/name");
  submit(stage, 0, id);
  assert_int_equal(orbit_subscription_next(stage->client, made->id, 0, 5000, &page, &error), ORBIT_OK);
  assert_int_equal(page->count, 1);
  assert_string_equal(page->items[0]->task_id, id);
  assert_int_equal(orbit_subscription_ack(stage->client, "a", made->id, page->next_position, &other, &error), ORBIT_OK);
  assert_int_equal(other->position, page->next_position);
  orbit_subscription_free(other);
  orbit_event_page_free(page);
  assert_int_equal(orbit_subscription_next(stage->client, made->id, 0, 0, &page, &error), ORBIT_OK);
  assert_int_equal(page->count, 0);
  orbit_event_page_free(page);
  assert_int_equal(orbit_subscription_list(stage->client, 0, NULL, &list, &error), ORBIT_OK);
  assert_true(list->count == 1 && list->next_cursor == NULL && list->items[0]->lag >= 1);
  orbit_subscription_list_free(list);
  assert_int_equal(orbit_subscription_delete(stage->client, "d", made->id, &other, &error), ORBIT_OK);
  orbit_subscription_free(other);
  assert_int_equal(orbit_subscription_get(stage->client, made->id, &other, &error), ORBIT_REFUSED);
  assert_string_equal(error.code, "NOT_FOUND");
  assert_int_equal(orbit_subscription_ack(stage->client, "z", made->id, 0, &other, &error), ORBIT_INVALID_ARGUMENT);
  orbit_subscription_free(made);
  stage_down(stage);
}

/* ---- Waiting ---- */

static void a_task_is_waited_for(void **state) {
  struct stage *stage = stage_new();
  struct orbit_task *task;
  struct orbit_error error;
  char id[ORBIT_ID_SIZE];
  (void)state;
  stage_up(stage, WAIT_FOR_LEAVE, false);
  submit(stage, 0, id);
  assert_int_equal(orbit_wait_task(stage->client, id, 200, &task, &error), ORBIT_TIMEOUT);
  atomic_store(&stage->leave, true);
  assert_int_equal(orbit_wait_task(stage->client, id, wait_ms_max, &task, &error), ORBIT_OK);
  assert_int_equal(task->state, ORBIT_TASK_SUCCEEDED);
  orbit_task_free(task);
  assert_int_equal(orbit_wait_task(stage->client, id, 0, &task, &error), ORBIT_OK); /* it has come to rest already */
  orbit_task_free(task);
  id[0] = id[0] == '0' ? '1' : '0';
  assert_int_equal(orbit_wait_task(stage->client, id, 1000, &task, &error), ORBIT_REFUSED);
  assert_string_equal(error.code, "NOT_FOUND");
  stage_down(stage);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(killed_readers_miss_nothing),
      cmocka_unit_test(five_hundred_readers_hear_of_it),
      cmocka_unit_test(a_subscription_goes_round),
      cmocka_unit_test(a_task_is_waited_for),
  };
  stage_run(tests);
}
