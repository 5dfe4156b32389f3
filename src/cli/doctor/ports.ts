import { type Config, flagName } from '../../config/index.js'
import { type Finding, fail, ok, warn } from './finding.js'
import { canListen, holderOf, listeningSockets } from './port-holders.js'

const HTTP_LISTENERS = ['apiPort', 'restPort', 'queuePort'] as const

type Listener = (typeof HTTP_LISTENERS)[number] | 'redisDomainPort'

/** Whether the ports that all databases share are free, or held by the server that already runs on this data directory. */
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
    `${port} is taken by ${who}`,
    `Stop that program, or choose another port with ${flagName(option)}.`,
  )
}

/** How many ports of the databases' range others hold while no server runs here. */
export function checkRedisPorts({ redisPorts: { from, to } }: Config, serverPid: number | undefined): Finding {
  const size = to - from + 1
  const busy = [...listeningSockets().keys()].filter((port) => port >= from && port <= to).length
  const found = `${from} to ${to}, ${size - busy} of ${size} free`
  if (serverPid !== undefined || busy === 0) return ok('redisPorts', found)
  if (busy < size) return warn('redisPorts', found, 'New databases avoid the busy ones; choose a range that is yours.')
  return fail('redisPorts', found, `Choose another range with ${flagName('redisPorts')}.`)
}
