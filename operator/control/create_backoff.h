/* create_backoff - how many objects of one kind a job may create at once. Pure: time is passed in.
 *
 * Any number, until the API server refuses one because of a quota, Pod Security or a webhook. Then none for a delay
 * that grows with each refused round. After the delay one, two, four, ... as long as the server accepts them. So a job
 * that does not fit retries rarely, and with one object. A round is all creates that were sent before the first refusal
 * arrived.
 */
#ifndef TRAINYARD_CONTROL_CREATE_BACKOFF_H
#define TRAINYARD_CONTROL_CREATE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

struct create_backoff {
    int failures;       /* refused rounds in a row */
    int64_t until_ms;   /* no creates before that */
    int64_t refused_ms; /* when the first refusal of the last round came; 0: never */
    int max_in_flight;  /* 0: any number */
    int in_flight;
};

bool create_backoff_allows(const struct create_backoff *b, int64_t now_ms);
/* One that was sent at sent_ms is refused. true: it is the first of its round, the one that is reported. */
bool create_backoff_refused(struct create_backoff *b, int64_t sent_ms, int64_t now_ms);
/* One that was sent at sent_ms is accepted. */
void create_backoff_accepted(struct create_backoff *b, int64_t sent_ms);
/* No creates for at_least_ms, or for the delay after so many failures if that is longer; the limit stays. */
void create_backoff_delay(struct create_backoff *b, int64_t now_ms, int64_t at_least_ms);
/* Resets the back-off, for example after a change of the spec. Creates in flight stay counted. */
void create_backoff_reset(struct create_backoff *b);

/* 1, 2, 4, ... 60 s after 1, 2, 3, ... rounds. */
int64_t create_backoff_delay_ms(int failures);

#endif
