/* Each piece gets a record that counts it off when gRPC has given it back. */
#include "rpc/reply_pieces.h"

#include "base/mem.h"

void reply_pieces_drop(struct rpc_reply *reply)
{
    for (size_t i = 0; i < reply->npieces; i++)
        if (reply->pieces[i].done != NULL)
            reply->pieces[i].done(reply->pieces[i].user);
}

struct borrowed_piece {
    atomic_size_t *borrowed;
    void (*done)(void *user);
    void *user;
};

static void piece_done(void *user)
{
    auto_free struct borrowed_piece *piece = user;
    if (piece->done != NULL)
        piece->done(piece->user);
    atomic_fetch_sub(piece->borrowed, 1);
}

void reply_pieces_lend(struct rpc_reply *reply, atomic_size_t *borrowed)
{
    for (size_t i = 0; i < reply->npieces; i++) {
        struct rpc_piece *p = &reply->pieces[i];
        struct borrowed_piece *piece = xmalloc(sizeof(*piece));
        *piece = (struct borrowed_piece){ borrowed, p->done, p->user };
        p->done = piece_done;
        p->user = piece;
    }
    atomic_fetch_add(borrowed, reply->npieces);
}
