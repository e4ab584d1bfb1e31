/* Owns the reading of lists, page by page while everything changes and the server ends and starts again: what is asked for, and
 * what each page must hold. */
#include <string.h>

#include "sim/sim.h"
#include "sim/model_internal.h"

/* ---- what a list must show ---- */

/* What the request may not ask for is refused. */
void model_list(struct model *model, const struct request *request, struct expected *expected) {
  const struct asked *asked = &request->asked;
  bool begins = id_is_zero(&asked->after);
  if (request->kind != COMMAND_LIST_TASKS) return;
  if (asked->queue != asked_any && !who_reaches(request->who, asked->queue)) expected->status = STATUS_NOT_FOUND;
  else if (!begins && model_task_there(model, &asked->after) == NULL) expected->status = STATUS_INVALID_ARGUMENT;
}

static bool shows_task(const struct request *request, const struct model_task *task) {
  const struct asked *asked = &request->asked;
  return who_reaches(request->who, task->queue) && (asked->queue == asked_any || asked->queue == task->queue) &&
         (asked->state == TASK_NONE || asked->state == task->state) &&
         (asked->handler == asked_any || asked->handler == task->handler) &&
         (asked->business_key == 0 || asked->business_key == task->business_key) &&
         (asked->created_after == 0 || task->created_at > asked->created_after) &&
         (asked->created_before == 0 || task->created_at < asked->created_before);
}

/* One page is being held against what it must be. */
struct page {
  struct sim *sim;
  const struct request *request;
  const struct answer_list *list;
  uint32_t row; /* the next to be met */
};

/* The object must stand in the next row. True: it does; else the page is over, as it should be or not. */
static bool next_row(struct page *page, const struct id *id) {
  if (page->row < page->list->count) return true;
  if (page->row < page->request->asked.limit || !page->list->more)
    model_complain(&page->sim->model, "a list ends before %s, which it should show", id_text(id).text);
  return false;
}

static void end_page(struct page *page, const struct id *last) {
  struct model *model = &page->sim->model;
  const struct answer_list *list = page->list;
  if (!sim_is_well(page->sim)) return;
  if (page->row != list->count) model_complain(model, "a list shows %u rows too many", list->count - page->row);
  else if (list->more && list->count != page->request->asked.limit)
    model_complain(model, "a page is not full, and more follows");
  else if (list->more && last != NULL && !id_equal(last, &list->next)) model_complain(model, "a page goes on elsewhere");
}

/* Newest first: from the last task of the model to its first. */
static void compare_tasks(struct page *page) {
  const struct model *model = &page->sim->model;
  const struct id *after = &page->request->asked.after;
  bool begins = id_is_zero(after);
  for (uint32_t i = model->task_count; i-- > 0 && sim_is_well(page->sim);) {
    const struct model_task *task = &model->tasks[i];
    if ((!begins && id_compare(&task->id, after) >= 0) || model_is_gone(model, task) || !shows_task(page->request, task))
      continue;
    if (!next_row(page, &task->id)) break;
    sim_compare_task(page->sim, task, &page->list->of.tasks[page->row++], NULL, DEPTH_LIVE);
  }
  end_page(page, page->list->count != 0 ? &page->list->of.tasks[page->list->count - 1].id : NULL);
}

static void compare_queues(struct page *page) {
  struct model *model = &page->sim->model;
  const struct id *after = &page->request->asked.after;
  const struct answer_list *list = page->list;
  for (unsigned i = 0; i < model->queue_count && sim_is_well(page->sim); i++) {
    const struct model_queue *queue = &model->queues[i];
    if (!who_reaches(page->request->who, i) || id_compare(&queue->id, after) <= 0) continue;
    if (!next_row(page, &queue->id)) break;
    sim_compare_queue(page->sim, queue, &list->of.queues[page->row], true);
    if (list->oldest_waiting_at[page->row++] != model_oldest_waiting(model, i))
      model_complain(model, "another task of queue %s waits longest", id_text(&queue->id).text);
  }
  end_page(page, list->count != 0 ? &list->of.queues[list->count - 1].id : NULL);
}

static void compare_applications(struct page *page) {
  struct model *model = &page->sim->model;
  const struct answer_list *list = page->list;
  for (unsigned i = 0; i < applications_max && sim_is_well(page->sim); i++) {
    const struct id *id = &model->applications[i].id;
    if (id_compare(id, &page->request->asked.after) <= 0) continue;
    if (!next_row(page, id)) break;
    const struct application *application = &list->of.applications[page->row++];
    if (!id_equal(&application->id, id) || application->unfinished != model->applications[i].unfinished)
      model_complain(model, "application %s is listed as what it is not", id_text(id).text);
  }
  end_page(page, list->count != 0 ? &list->of.applications[list->count - 1].id : NULL);
}

static void compare_schedules(struct page *page) {
  const struct model *model = &page->sim->model;
  const struct answer_list *list = page->list;
  for (unsigned i = 0; i < model->schedule_count && sim_is_well(page->sim); i++) {
    const struct model_schedule *schedule = &model->schedules[i];
    if (schedule->deleted || !who_reaches(page->request->who, schedule->queue) ||
        id_compare(&schedule->id, &page->request->asked.after) <= 0)
      continue;
    if (!next_row(page, &schedule->id)) break;
    sim_compare_schedule(page->sim, schedule, &list->of.schedules[page->row++]);
  }
  end_page(page, list->count != 0 ? &list->of.schedules[list->count - 1].id : NULL);
}

static void compare_subscriptions(struct page *page) {
  struct model *model = &page->sim->model;
  const struct answer_list *list = page->list;
  for (unsigned i = 0; i < model->subscription_count && sim_is_well(page->sim); i++) {
    const struct model_subscription *subscription = &model->subscriptions[i];
    unsigned queue = subscription->filter.queue;
    bool narrow = page->request->who == WHO_NARROW && (queue == asked_any || !who_reaches(WHO_NARROW, queue));
    if (subscription->deleted || narrow || id_compare(&subscription->id, &page->request->asked.after) <= 0) continue;
    if (!next_row(page, &subscription->id)) break;
    struct model_object want = model_subscription_object(subscription);
    sim_compare_subscription(page->sim, &want, &list->of.subscriptions[page->row++]);
  }
  end_page(page, list->count != 0 ? &list->of.subscriptions[list->count - 1].id : NULL);
}

static void compare_audit(struct page *page) {
  struct model *model = &page->sim->model;
  const struct asked *asked = &page->request->asked;
  const struct answer_list *list = page->list;
  for (uint32_t i = model->audit_count; i-- > 0 && sim_is_well(page->sim);) {
    const struct model_audit *audit = &model->audits[i];
    if (asked->before_seq != 0 && audit->seq >= asked->before_seq) continue;
    if (!id_is_zero(&asked->target) && !id_equal(&asked->target, &audit->target_id)) continue;
    if (!next_row(page, &audit->target_id)) break;
    if (list->of.seqs[page->row++] != audit->seq)
      model_complain(model, "the audit record at seq %llu is not where it should be listed", (unsigned long long)audit->seq);
  }
  end_page(page, NULL);
}

void sim_compare_page(struct sim *sim, const struct request *request, struct answer *answer) {
  struct page page = {.sim = sim, .request = request, .list = &answer->as.list};
  if (request->kind == COMMAND_LIST_TASKS) compare_tasks(&page);
  else if (request->kind == COMMAND_LIST_AUDIT) compare_audit(&page);
  else if (request->asked.list == LIST_QUEUES) compare_queues(&page);
  else if (request->asked.list == LIST_SCHEDULES) compare_schedules(&page);
  else if (request->asked.list == LIST_SUBSCRIPTIONS) compare_subscriptions(&page);
  else compare_applications(&page);
}

/* ---- readers ---- */

void sim_turn_page(struct sim *sim, const struct pending *pending) {
  struct request *next = &sim->browsers[pending->browser - 1];
  const struct answer *answer = &pending->ticket.answer;
  if (answer->status != STATUS_OK || !answer->as.list.more) {
    memset(next, 0, sizeof *next);
    return;
  }
  next->asked.after = answer->as.list.next;
  next->asked.before_seq = answer->as.list.next_seq;
}

/* A moment at which a task was made, or just beside it. */
static int64_t some_moment(struct sim *sim) {
  const struct model *model = &sim->model;
  if (model->task_count == 0) return sim->now_us;
  return model->tasks[sim_roll(sim, model->task_count)].created_at + (int64_t)sim_roll(sim, 3) - 1;
}

static struct request some_list(struct sim *sim) {
  struct request request = {.kind = COMMAND_LIST_TASKS, .who = (uint8_t)sim_roll(sim, principals_max)};
  struct asked *asked = &request.asked;
  uint64_t luck = sim_roll(sim, 100);
  *asked = (struct asked){.queue = asked_any, .handler = asked_any, .limit = 1 + (uint32_t)sim_roll(sim, 20)};
  if (luck < 18) {
    request.kind = COMMAND_LIST_OBJECTS;
    asked->list = luck < 5 ? LIST_QUEUES : luck < 10 ? LIST_SCHEDULES : luck < 14 ? LIST_SUBSCRIPTIONS : LIST_APPLICATIONS;
    asked->limit = 1 + (uint32_t)sim_roll(sim, 3);
  } else if (luck < 28) {
    request.kind = COMMAND_LIST_AUDIT;
    if (sim_chance(sim, 50)) asked->target = sim->model.queues[sim_roll(sim, sim->model.queue_count)].id;
  } else {
    if (sim_chance(sim, 40)) asked->queue = (uint8_t)sim_roll(sim, sim->model.queue_count);
    if (sim_chance(sim, 20)) asked->handler = (uint8_t)sim_roll(sim, handlers_offered_max);
    if (sim_chance(sim, 30)) asked->business_key = (uint8_t)sim_roll(sim, business_keys_max);
    if (sim_chance(sim, 30)) asked->state = (enum task_state)(TASK_WAITING + sim_roll(sim, TASK_ENUM_END - TASK_WAITING));
    if (sim_chance(sim, 10)) asked->created_after = some_moment(sim);
    if (sim_chance(sim, 10)) asked->created_before = some_moment(sim);
    if (sim_chance(sim, 2)) asked->after = sim->model.namespace_id; /* no task */
  }
  return request;
}

static bool is_of(const struct pending *pending, bool feed, unsigned number) {
  return pending->browser == number && (pending->request.kind == COMMAND_OPEN_FEED) == feed;
}

bool sim_is_asked(const struct sim *sim, bool feed, unsigned number) {
  for (uint32_t i = 0; i < sim->pending_count; i++)
    if (is_of(&sim->pending[i], feed, number)) return true;
  for (uint32_t k = 0; k < sim->held_count; k++)
    for (uint32_t i = 0; i < sim->held[k].pending_count; i++)
      if (is_of(&sim->held[k].pending[i], feed, number)) return true;
  return false;
}

void step_browse(struct sim *sim) {
  uint8_t browser = (uint8_t)sim_roll(sim, browsers_max);
  struct request *next = &sim->browsers[browser];
  if (next->kind == 0) *next = some_list(sim);
  if (sim_is_asked(sim, false, browser + 1U)) return; /* its page has not come yet */
  sim_ask(sim, next)->browser = browser + 1;
}
