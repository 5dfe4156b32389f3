import type { DatabaseMove } from '../../contract/server/moves.js'
import type * as moves from '../transactions/moves.js'

/** A move as it is listed, with the name of its database. */
export type ListedMove = moves.MoveRow & { readonly name: string }

/** A move as the management API answers it. */
export function renderMove(row: ListedMove): DatabaseMove {
  const { move_id, database_id, name, source, target, state, problem, asked_at, ended_at } = row
  return {
    ...{ move_id, database_id, database_name: name, from: source, to: target, state },
    problem: problem ?? '',
    start_time: Math.floor(asked_at / 1_000),
    end_time: ended_at === null ? 0 : Math.floor(ended_at / 1_000),
  }
}
