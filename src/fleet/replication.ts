/** Replication of a database with an engine of another node. Other modules carry the stream between the nodes. */
import { type Clock, pause } from '../base/index.js'
import { askEngine, type ControlAddress } from './ask.js'
import { withControl } from './control.js'
import type { SnapshotSource } from './snapshot/take.js'
import { REPLICATION_USER } from './spec.js'
import type { RemotePrimary, Replication, ReplicationPlace, ReplicationPosition } from './types.js'

const POLL_MS = 20

/** Makes an engine copy the primary of another node and follow it. Resolves when the engine has begun to copy. */
export function followRemote(address: ControlAddress, { port, password }: RemotePrimary): Promise<void> {
  return withControl(address, async (engine) => {
    await engine.call('CONFIG', 'SET', 'masteruser', REPLICATION_USER, 'masterauth', password)
    await engine.call('REPLICAOF', '127.0.0.1', `${port}`)
  })
}

/** Makes an engine that followed another one the primary, with all data that it has. */
export function promoteToPrimary(address: ControlAddress): Promise<void> {
  return withControl(address, async (engine) => {
    await engine.call('REPLICAOF', 'NO', 'ONE')
    await engine.call('CONFIG', 'SET', 'masteruser', '', 'masterauth', '')
  })
}

/** See `Fleet.replicationWith`. */
export function replicationWith({ address, persistence, clock }: SnapshotSource): Replication {
  const ask = (...command: string[]) => askEngine(address, [command]).then(() => undefined)
  return {
    socketPath: address.socketPath,
    password: address.secrets.replication,
    position: () => positionOf(address, persistence === 'append-only'),
    place: async () => placeIn(await infoOf(address, 'replication')),
    pauseWrites: (forMs) => ask('CLIENT', 'PAUSE', `${forMs}`, 'WRITE'),
    resumeWrites: () => ask('CLIENT', 'UNPAUSE'),
    save: () => save(address, clock),
  }
}

async function infoOf(address: ControlAddress, section: string): Promise<ReadonlyMap<string, string>> {
  const [text = ''] = await askEngine(address, [['INFO', section]])
  return new Map([...text.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, field = '', value = '']) => [field, value]))
}

async function positionOf(address: ControlAddress, hasLog: boolean): Promise<ReplicationPosition> {
  const [info, stored] = [await infoOf(address, 'replication'), await infoOf(address, 'persistence')]
  const isLogged = ['aof_rewrite_in_progress', 'aof_rewrite_scheduled'].every((field) => stored.get(field) === '0')
  return {
    ...placeIn(info),
    isLinked: isReplica(info) && info.get('master_link_status') === 'up',
    isLogged: !hasLog || (stored.get('aof_enabled') === '1' && isLogged),
    hasLogFailed: hasLog && stored.get('aof_last_bgrewrite_status') === 'err',
  }
}

const isReplica = (info: ReadonlyMap<string, string>): boolean => info.get('role') === 'slave'

function placeIn(info: ReadonlyMap<string, string>): ReplicationPlace {
  const offset = Number(info.get(isReplica(info) ? 'slave_repl_offset' : 'master_repl_offset'))
  return { replid: info.get('master_replid') ?? '', offset }
}

async function save(address: ControlAddress, clock: Clock): Promise<void> {
  await untilIdle(address, clock)
  await askEngine(address, [['BGSAVE']])
  const info = await untilIdle(address, clock)
  if (info.get('rdb_last_bgsave_status') !== 'ok') throw new Error('the data could not be saved')
}

async function untilIdle(address: ControlAddress, clock: Clock): Promise<ReadonlyMap<string, string>> {
  for (;;) {
    const info = await infoOf(address, 'persistence')
    const isBusy = ['rdb_bgsave_in_progress', 'aof_rewrite_in_progress'].some((field) => info.get(field) === '1')
    if (!isBusy) return info
    await pause(clock, POLL_MS)
  }
}
