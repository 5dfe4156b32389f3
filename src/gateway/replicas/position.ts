/** Where an engine stands in the history of a database's changes. */
export interface Position {
  /** Names the history; every life of a primary begins a new one. */
  readonly history: string
  /** How far the engine has come in it, bytes. */
  readonly offset: number
}

/** Reads the position of a primary from the replication section of its INFO; undefined when it is none. */
export function primaryPosition(info: string): Position | undefined {
  return fieldOf(info, 'role') === 'master' ? positionOf(info, 'master_repl_offset') : undefined
}

/** Reads what a replica has applied from the same section; undefined while it does not follow its primary. */
export function replicaPosition(info: string): Position | undefined {
  const follows = fieldOf(info, 'role') === 'slave' && fieldOf(info, 'master_link_status') === 'up'
  return follows ? positionOf(info, 'slave_repl_offset') : undefined
}

/** Whether a replica has everything that its primary had at `goal`. */
export function hasReached(replica: Position | undefined, goal: Position): boolean {
  return replica !== undefined && replica.history === goal.history && replica.offset >= goal.offset
}

function positionOf(info: string, offsetField: string): Position | undefined {
  const history = fieldOf(info, 'master_replid')
  const offset = Number(fieldOf(info, offsetField))
  return history !== undefined && Number.isSafeInteger(offset) ? { history, offset } : undefined
}

function fieldOf(info: string, field: string): string | undefined {
  return new RegExp(`^${field}:([^\r\n]*)`, 'm').exec(info)?.[1]
}
