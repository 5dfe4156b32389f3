/** Nodes of a cluster on this machine, each in a process of its own, at a loopback address of its own. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_PLANS, NO_LIMIT, NS_PER_MS } from '../../src/contract/databases/plans.js'
import { freePort, type RunningHomeport, startHomeport, tempDir, waitFor } from '../../test/support/index.js'

/** A node. */
export interface BenchNode {
  readonly host: string
  readonly region: string
  readonly homeport: RunningHomeport
}

/**
 * Starts a node for each region, one after the other; resolves when they know each other. Commands are not limited.
 * @param idleMs after this time without a command, a database with the plan `fixed_250mb` sleeps.
 */
export async function startNodes(store: string, regions: readonly string[], idleMs = 300): Promise<BenchNode[]> {
  const plansFile = join(tempDir(), 'plans.json')
  const { payg, fixed_250mb } = DEFAULT_PLANS
  const plans = {
    payg: { ...payg, db_max_commands_per_second: NO_LIMIT },
    fixed_250mb: { ...fixed_250mb, db_store_max_idle: idleMs * NS_PER_MS },
  }
  writeFileSync(plansFile, JSON.stringify(plans))
  const nodes: BenchNode[] = []
  for (const region of regions) {
    const host = `127.0.0.${nodes.length + 2}`
    const node = ['--node', `n${nodes.length}`, '--region', region, '--peer-port', String(await freePort())]
    const args = [
      '--store',
      store,
      ...node,
      '--advertise',
      '127.0.0.1',
      '--log-level',
      'silent',
      '--plans-file',
      plansFile,
    ]
    const credentials = nodes[0] && { credentials: nodes[0].homeport.credentials }
    nodes.push({ host, region, homeport: await startHomeport({ host, args, ...credentials }) })
  }
  const knows = async ({ homeport }: BenchNode) => {
    const all = (await homeport.api('GET', '/v2/nodes')).body as object[]
    return all.filter((one) => 'engine_memory' in one).length === nodes.length
  }
  await waitFor(async () => (await Promise.all(nodes.map(knows))).every(Boolean), {
    what: 'the nodes to know each other',
  })
  return nodes
}
