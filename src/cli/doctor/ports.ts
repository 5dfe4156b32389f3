import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { type Config, flagName } from '../../config/index.js'
import { type Finding, fail, ok, warn } from './finding.js'

const HTTP_LISTENERS = ['apiPort', 'restPort', 'queuePort'] as const

type Listener = (typeof HTTP_LISTENERS)[number] | 'redisDomainPort'

/** Checks whether the ports of the server are free, or used by the server that runs on this data directory. */
export function checkPorts(config: Config, serverPid: number | undefined): Promise<Finding[]> {
  const shared: readonly Listener[] = config.redisDomain === undefined ? [] : ['redisDomainPort']
  return Promise.all([...HTTP_LISTENERS, ...shared].map((option) => checkPort(config, option, serverPid)))
}

async function checkPort(config: Config, option: Listener, serverPid: number | undefined): Promise<Finding> {
  const port = config[option]
  if (await canListen(config.host, port)) return ok(option, `${port} is free`)
  const holder = holderOf(port)
  if (holder !== undefined && holder.pid === serverPid) return ok(option, `${port} is served by process ${holder.pid}`)
  const who = holder === undefined ? 'another program' : `${holder.program} (process ${holder.pid})`
  return fail(
    option,
    `${port} is used by ${who}`,
    `Stop that program, or choose another port with ${flagName(option)}.`,
  )
}

/** Checks how many ports of the databases' range are free while no server runs here. */
export function checkRedisPorts({ redisPorts: { from, to } }: Config, serverPid: number | undefined): Finding {
  const size = to - from + 1
  const busy = [...listeningSockets().keys()].filter((port) => port >= from && port <= to).length
  const found = `${from} to ${to}, ${size - busy} of ${size} free`
  if (serverPid !== undefined || busy === 0) return ok('redisPorts', found)
  if (busy < size)
    return warn('redisPorts', found, 'New databases skip the ports in use. Choose a range without other programs.')
  return fail('redisPorts', found, `Choose another range with ${flagName('redisPorts')}.`)
}

/** A program that listens on a port. */
interface PortHolder {
  readonly pid: number
  readonly program: string
}

/** Whether this process could listen on the port now. */
function canListen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve(true)))
  })
}

/** The state of a listening socket in `/proc/net/tcp`. */
const LISTENING = '0A'

/** Listening sockets, port to inode, from `/proc/net`. Empty on systems other than Linux. */
function listeningSockets(): ReadonlyMap<number, string> {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => attempt(() => readFileSync(path, 'utf8')) ?? '')
  const rows = tables.flatMap((table) => table.split('\n').slice(1)).map((row) => row.trim().split(/\s+/))
  return new Map(
    rows
      .filter((columns) => columns[3] === LISTENING)
      .map((columns) => [Number.parseInt(columns[1]?.split(':')[1] ?? '', 16), columns[9] ?? '']),
  )
}

/** The process that listens on the port; `undefined` when there is none or it belongs to another user. */
function holderOf(port: number): PortHolder | undefined {
  const inode = listeningSockets().get(port)
  if (inode === undefined) return undefined
  const pids = (attempt(() => readdirSync('/proc')) ?? []).filter((name) => /^\d+$/.test(name))
  const pid = pids.find((candidate) => holdsSocket(candidate, inode))
  if (pid === undefined) return undefined
  return { pid: Number(pid), program: attempt(() => readFileSync(`/proc/${pid}/comm`, 'utf8').trim()) ?? 'a program' }
}

function holdsSocket(pid: string, inode: string): boolean {
  const files = attempt(() => readdirSync(`/proc/${pid}/fd`)) ?? []
  return files.some((file) => attempt(() => readlinkSync(`/proc/${pid}/fd/${file}`)) === `socket:[${inode}]`)
}

/** Reads from `/proc`; `undefined` if the process has ended or belongs to another user. */
function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
