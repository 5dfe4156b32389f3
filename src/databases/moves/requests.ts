import { auditRow } from '../../accounts/index.js'
import { newId } from '../../base/index.js'
import type { DatabaseMove } from '../../contract/server/moves.js'
import type { Caller } from '../../http/index.js'
import type { Store } from '../../store/index.js'
import * as moves from '../transactions/moves.js'
import type { Moves } from './moves.js'

/** Who asks for moves. */
export interface MoveRequestContext {
  readonly store: Pick<Store, 'run'>
  readonly caller: Caller
  /** Unix milliseconds. */
  readonly at: number
  /** The moves of this node. */
  readonly moves: Moves | undefined
}

/** Asks for a move. The home of the database carries it out, also after a restart. */
export async function requestMove(context: MoveRequestContext, databaseId: string, target: string): Promise<void> {
  const { store, caller, at } = context
  const event = { action: 'Move Database to Node', entity: databaseId, details: { node: target } } as const
  const args = { moveId: newId('mov_', at), databaseId, target, at, audit: auditRow(caller, event, at) }
  await store.run(moves.ask, args)
  context.moves?.notifyNodes()
}

/** All moves, the newest first; of each database also the last one that ended. */
export async function listMoves(store: Pick<Store, 'run'>): Promise<DatabaseMove[]> {
  return (await store.run(moves.list, {})).map(render)
}

function render(row: moves.MoveRow & { readonly name: string }): DatabaseMove {
  const { move_id, database_id, name, source, target, state, problem, asked_at, ended_at } = row
  return {
    move_id,
    database_id,
    database_name: name,
    from: source,
    to: target,
    state,
    problem: problem ?? '',
    start_time: Math.floor(asked_at / 1_000),
    end_time: ended_at === null ? 0 : Math.floor(ended_at / 1_000),
  }
}
