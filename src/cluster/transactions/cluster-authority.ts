import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { change, first, type Transaction } from '../../store/statement.js'

/** The authority of the link between nodes, PEM. */
export interface StoredAuthority {
  readonly certificate: string
  readonly private_key: string
}

const theOne = query<object, StoredAuthority>(({ db }) =>
  db.selectFrom('cluster_authority').select(['certificate', 'private_key']),
)

const keep = query<StoredAuthority & { now: number }>(({ db, p }) =>
  db
    .insertInto('cluster_authority')
    .values({ place: 1, certificate: p.certificate, private_key: p.private_key, created_at: p.now })
    .onConflict((conflict) => conflict.column('place').doNothing()),
)

/** Stores an authority, unless another node was first. Returns the stored one. */
export const agree = write(
  'clusterAuthority.agree',
  function* (args: StoredAuthority & { now: number }): Transaction<StoredAuthority> {
    yield* change(keep, args)
    return (yield* first(theOne, {})) ?? args
  },
)
