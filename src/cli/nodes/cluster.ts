import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../base/index.js'
import type { Config } from '../../config/index.js'
import type { ExitCode } from '../exit-codes.js'
import type { Io } from '../io.js'
import { stopSignals } from '../serve.js'
import { ServiceManager } from '../service-manager.js'
import { startLocalPostgres } from './local-postgres.js'
import { type ProcessSpec, runProcesses } from './processes.js'

/** Time that a server has to end after its grace period. */
const STOP_MARGIN_MS = 10_000

/**
 * `homeport start --processes N`: runs N nodes on this machine, which share the listening ports.
 * @param args the arguments of this process. Each node gets the same ones, and arguments that distinguish the nodes.
 */
export function runAsProcesses(config: Config, args: readonly string[], io: Io): Promise<ExitCode> {
  const manager = new ServiceManager(io)
  const specs = Array.from({ length: config.processes }, (_, index) => processSpec(config, args, index))
  return runProcesses({
    specs,
    io,
    clock: systemClock,
    stopRequests: stopSignals(systemClock),
    stopDeadlineMs: config.shutdownGraceMs + STOP_MARGIN_MS,
    onServing: () => {
      void manager.notify('READY=1')
      io.out(`${specs.length} processes serve: ${specs.map(({ name }) => name).join(', ')}.\n`)
    },
  })
}

/** The process of a node. The first one has the name and the data directory of the command. */
function processSpec({ node, dataDir, peerPort }: Config, args: readonly string[], index: number): ProcessSpec {
  if (index === 0) return { name: `${node}`, args: [...args, '--processes', '1'] }
  const name = `${node}-${index + 1}`
  const own = ['--node', name, '--data-dir', join(dataDir, 'processes', String(index + 1))]
  return { name, args: [...args, '--processes', '1', ...own, '--peer-port', String(peerPort + index)] }
}

/**
 * `homeport dev --nodes N`: runs a cluster on this machine with a new PostgreSQL server. Everything is deleted at the end.
 * @param args the arguments of this command for all nodes.
 */
export async function runDevCluster(nodes: number, config: Config, args: readonly string[], io: Io): Promise<ExitCode> {
  const stopRequests = stopSignals(systemClock)
  io.err('Starting PostgreSQL.\n')
  const postgres = await startLocalPostgres(await freePort())
  const dir = await mkdtemp(join(tmpdir(), 'homeport-dev-'))
  const specs = Array.from({ length: nodes }, (_, index): ProcessSpec => {
    const name = nameOf(index)
    const own = ['--node', name, '--data-dir', join(dir, name), '--advertise', '127.0.0.1']
    const ports = ['--queue-port', String(config.queuePort), '--peer-port', String(config.peerPort + index)]
    // The first node creates the account with the fixed credentials.
    const command = index === 0 ? 'dev' : 'start'
    return { name, args: [command, ...args, ...own, ...ports], env: { HOMEPORT_STORE: postgres.url } }
  })
  try {
    return await runProcesses({
      specs,
      io,
      clock: systemClock,
      stopRequests,
      stopDeadlineMs: config.shutdownGraceMs + STOP_MARGIN_MS,
      onServing: () => io.out(welcome(specs)),
    })
  } finally {
    await postgres.stop()
    await rm(dir, { recursive: true, force: true })
  }
}

const nameOf = (index: number): string => String.fromCharCode('a'.charCodeAt(0) + index)

function welcome(specs: readonly ProcessSpec[]): string {
  return `
The nodes ${specs.map(({ name }) => name).join(', ')} serve on the same ports. Their data is deleted at the end.
Try \`homeport nodes list\`, and kill one: it starts again, and meanwhile the others deliver its messages.
`
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}
