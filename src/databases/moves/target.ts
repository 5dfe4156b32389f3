import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { pause } from '../../base/index.js'
import { NoSpace, problemOf } from '../copies.js'
import { engineSpecOf } from '../desired-engine.js'
import type { DatabaseRow } from '../lifecycle.js'
import * as backups from '../transactions/backups.js'
import * as databases from '../transactions/databases.js'
import * as moves from '../transactions/moves.js'
import type { MovesDeps, Progress } from './deps.js'
import { openStream, Relay, type StreamHead } from './streams.js'

const POLL_MS = 50
/** Attempts to open the port: the old home may be on the same machine, and closes its port a moment later. */
const PORT_TRIES = 100
const PORT_EVERY_MS = 100

/** What the home sends about a database that this node is to copy. */
export interface CopiedFrom {
  /** Of the replication user. */
  readonly password: string
  /** Estimated size of the data; 0 from an older version. */
  readonly bytes: number
}

/** A database whose data this node is copying. */
interface Copy {
  readonly moveId: string
  readonly relay: Relay
  state: 'copying' | 'following' | 'over'
  problem: string | undefined
}

/** Identifies a copy. */
export type CopyOf = Pick<moves.MoveRow, 'move_id' | 'database_id'>

/** Receives databases: the side of the next home. */
export class Target {
  readonly #deps: MovesDeps
  readonly #copies = new Map<string, Copy>()

  constructor(deps: MovesDeps) {
    this.#deps = deps
  }

  /** Cuts all streams. */
  stop(): void {
    for (const databaseId of this.#copies.keys()) this.#end(databaseId)
  }

  /** Whether this node copies a database. */
  has(databaseId: string): boolean {
    return this.#copies.has(databaseId)
  }

  /** What this node copies. */
  copies(): readonly CopyOf[] {
    return [...this.#copies].map(([database_id, { moveId: move_id }]) => ({ move_id, database_id }))
  }

  /** How far a copy is. */
  async progress(databaseId: string, moveId: string): Promise<Progress> {
    const copy = this.#copies.get(databaseId)
    if (copy?.moveId !== moveId) return { kind: 'unknown' }
    if (copy.problem !== undefined) return { kind: 'failed', problem: copy.problem }
    if (copy.state !== 'following') return { kind: 'copying' }
    const { fleet, node } = this.#deps
    const { replid, offset, isLinked, isLogged, hasLogFailed } = await (
      await fleet.replicationWith(databaseId)
    ).position()
    // The engine would retry for hours, and the database would stay busy.
    if (hasLogFailed && !isLogged) {
      return { kind: 'failed', problem: `the node ${node} could not write the copy to its disk, which may be full` }
    }
    return isLinked ? { kind: 'following', replid, offset, isLogged } : { kind: 'copying' }
  }

  /**
   * Copies a database; resolves when the copy follows. Never rejects.
   * @param clear removes what an earlier move has left here.
   */
  async receive(move: moves.MoveRow, from: CopiedFrom, clear: () => Promise<void>): Promise<void> {
    const { cluster, logger, node } = this.#deps
    const { database_id: databaseId, move_id: moveId, epoch, source } = move
    if (this.#copies.get(databaseId)?.moveId === moveId) return
    const head: StreamHead = { moveId, databaseId, epoch }
    const copy: Copy = {
      moveId,
      state: 'copying',
      problem: undefined,
      relay: new Relay(() => openStream(cluster, source, head)),
    }
    this.#end(databaseId)
    this.#copies.set(databaseId, copy)
    try {
      await clear()
      await this.#copy(copy, head, { ...from, source })
    } catch (error) {
      if (copy.state === 'over') return
      copy.problem = problemOf(error, node)
      logger.warn('database_move_failed', { databaseId, node: source, error })
    }
  }

  /** Begins to serve a database whose home is this node now. May be repeated. */
  async take(databaseId: string): Promise<void> {
    const { changes, directory, logger } = this.#deps
    const row = await changes.inTurn(databaseId, () => this.#publish(databaseId))
    if (!row) return
    this.#end(databaseId)
    logger.info('database_received', { databaseId })
    for (let tries = 1; directory.has(databaseId); tries++) {
      try {
        return await this.#deps.onServing(databaseId)
      } catch (error) {
        if (tries === PORT_TRIES) return logger.error('database_port_not_opened', { databaseId, error })
        await pause(this.#deps.clock, PORT_EVERY_MS)
      }
    }
  }

  /** Deletes a copy that is not needed, or serves it if this node is the home after all. */
  async discard({ move_id: moveId, database_id: databaseId }: CopyOf): Promise<void> {
    const { store, fleet, files, clock, node } = this.#deps
    const current = this.#copies.get(databaseId)
    if (current && current.moveId !== moveId) return
    const row = await store.run(databases.find, { databaseId })
    if (row?.home === node) await this.take(databaseId)
    else {
      // Ended only after the row was read: if the store does not answer, the next look finds the copy again.
      if (this.#copies.get(databaseId) === current) this.#end(databaseId)
      await fleet.remove(databaseId)
      await files.removeAll(databaseId)
    }
    await store.run(moves.settle, { moveId, at: clock.now() })
  }

  async #publish(databaseId: string): Promise<DatabaseRow | undefined> {
    const { store, fleet, plans, directory, usage, sleep, locator, node, logger } = this.#deps
    const row = await store.run(databases.find, { databaseId })
    if (row?.home !== node || directory.has(databaseId)) return undefined
    await usage.expect(databaseId)
    sleep.reportStarted(databaseId)
    // The fleet knows the desired state before any client can ask for the engines.
    fleet.ensure(engineSpecOf(row, plans, this.#deps.only), 'while-loading').catch((error: unknown) => {
      logger.error('database_wake_failed', { databaseId, error })
    })
    directory.put(row)
    locator.moved(node)
    return row
  }

  async #copy(copy: Copy, head: StreamHead, from: CopiedFrom & { readonly source: string }): Promise<void> {
    const { store, fleet, plans, clock } = this.#deps
    const { source, password, bytes } = from
    const { databaseId } = head
    const row = await store.run(databases.find, { databaseId })
    if (!row || row.home !== source) throw new Error('the node that sends it is not its home')
    await fleet.remove(databaseId)
    if (!(await fleet.checkSpace(bytes))) throw new NoSpace(this.#deps.node)
    const port = await copy.relay.listen()
    // The move may have ended meanwhile, and the copy with it.
    if (isOver(copy)) return copy.relay.close()
    const { members, ...spec } = engineSpecOf(row, plans)
    const primary = members.slice(0, 1)
    await fleet.ensure({ ...spec, members: primary, data: 'may-begin', follows: { port, password } }, 'while-loading')
    const replication = await fleet.replicationWith(databaseId)
    while (!(await replication.position()).isLinked) {
      if (isOver(copy)) return
      if (!(await fleet.checkSpace())) throw new NoSpace(this.#deps.node)
      await pause(clock, POLL_MS)
    }
    await this.#copyBackups(row, head, source)
    if (row.persistence === 'snapshot') await replication.save()
    if (copy.state === 'copying') copy.state = 'following'
  }

  async #copyBackups(row: DatabaseRow, head: StreamHead, source: string): Promise<void> {
    const { store, files } = this.#deps
    const { account_id: accountId, database_id: databaseId } = row
    await files.removeAll(databaseId)
    for (const backup of (await store.run(backups.list, { accountId, databaseId })) ?? []) {
      if (backup.state !== 'completed') continue
      const path = await files.prepare(backup)
      const stream = await openStream(this.#deps.cluster, source, { ...head, backupId: backup.backup_id })
      await pipeline(stream, createWriteStream(`${path}.part`, { mode: 0o600, flush: true }))
      await rename(`${path}.part`, path)
      const { sha256 } = await files.facts(backup)
      if (sha256 === backup.sha256) continue
      await rm(path, { force: true })
      throw new Error(`the file of the backup ${backup.backup_id} did not arrive completely`)
    }
  }

  #end(databaseId: string): void {
    const copy = this.#copies.get(databaseId)
    this.#copies.delete(databaseId)
    if (!copy) return
    copy.state = 'over'
    copy.relay.close()
  }
}

/** A function, because the compiler would assume that the state does not change during an `await`. */
const isOver = ({ state }: Copy): boolean => state === 'over'
