import { afterAll, expect, it } from 'vitest'
import { seeded } from '../../../base/testing/random.js'
import { declareDead } from '../../../cluster/transactions/cluster-nodes.js'
import { pauseWorkflow } from '../../../contract/bulk/paused.js'
import type { Endpoint } from '../../../contract/endpoint.js'
import { publishMessage } from '../../../contract/queue/messages.js'
import { Clients } from '../../../queue/testing/nodes/clients.js'
import { ClusterMemory } from '../../../queue/testing/nodes/cluster-memory.js'
import { Effects } from '../../../queue/testing/nodes/effects.js'
import { Ledger } from '../../../queue/testing/nodes/ledger.js'
import { Network } from '../../../queue/testing/nodes/network.js'
import type { Plant } from '../../../queue/testing/nodes/plants.js'
import { SimulatedLinks } from '../../../queue/testing/nodes/simulated-links.js'
import { SimulatedNode } from '../../../queue/testing/nodes/simulated-node.js'
import { Timeline } from '../../../queue/testing/nodes/timeline.js'
import { PROGRAM_URL, programOf, triggerItem } from '../../../workflow/testing/model/program.js'
import { attachRuns } from './run-extension.js'
import { RETRY_SETTINGS, RunLedger } from './run-ledger.js'
import { RUN_PLANTS } from './run-plants.js'
import { Sdk } from './sdk.js'

/** A scene that the simulation meets once in thousands of seeds, replayed as it was found. */

const memory = new ClusterMemory()
afterAll(() => memory.close())

const nothing = (): void => undefined

/** Quiet nodes with runs. */
function nodesWithRuns(names: readonly string[]) {
  memory.clear()
  // With this seed the trigger reaches the store before the process of the dead node ends.
  const timeline = new Timeline(5)
  const network = new Network(timeline)
  network.isQuiet = true
  const effects = new Effects()
  const ledger = new Ledger({ timeline, memory })
  const nodes: SimulatedNode[] = []
  const stage = { timeline, memory, network, effects, ledger, nodes: () => nodes }
  const runs = new RunLedger(stage)
  const sdk = new Sdk(stage, new Clients(stage), runs)
  const extensions = [{ attach: attachRuns, receive: sdk.receive.bind(sdk) }]
  const links = new SimulatedLinks(timeline, network)
  for (const name of names) nodes.push(new SimulatedNode(name, 0, { ...stage, links, extensions, onEnd: nothing }))
  effects.on(declareDead, ({ incarnation }, isDead) => {
    for (const node of nodes) if (isDead && node.cluster.incarnation === incarnation) node.isDeclaredDead = true
  })
  for (const node of nodes) node.start()
  const pass = (ms: number) => timeline.run(timeline.now + ms, nothing)
  return { timeline, runs, nodes, pass }
}

/**
 * A node is paused and declared dead. Meanwhile another node pauses the workflow. Then the first node wakes up with its old
 * knowledge and a trigger in its socket. Returns the broken guarantee, and whether the node has accepted the trigger.
 */
async function wakesUpDead({ patch }: Plant) {
  const { timeline, runs, nodes, pass } = nodesWithRuns(['a', 'b'])
  const undo = patch?.(timeline, memory)
  try {
    const [a, b] = nodes
    if (!a || !b) throw new Error('there are no nodes')
    const ask = (node: SimulatedNode, endpoint: Endpoint, request: Parameters<SimulatedNode['call']>[1]) => {
      let outcome = 'none'
      const call = (): void =>
        void node.call(endpoint, request).then(
          () => (outcome = 'answered'),
          () => (outcome = 'refused'),
        )
      timeline.after(0, call, node.process)
      return () => outcome
    }
    await pass(10_000)
    a.process.pause(8_000, false)
    await pass(7_000)
    const paused = ask(b, pauseWorkflow, { body: { workflowUrl: PROGRAM_URL } })
    await pass(500)
    expect([a.isDeclaredDead, paused()]).toEqual([true, 'answered'])
    runs.workflowPaused(timeline.now)
    const program = programOf(seeded(1), () => 'run')
    const run = runs.trigger('wfr_late', program)
    const { destination, headers, body } = triggerItem(run.runId, program, RETRY_SETTINGS)
    const triggered = ask(a, publishMessage, { params: { destination }, headers, body })
    await pass(20_000)
    return { problem: timeline.problem, triggered: triggered() }
  } finally {
    undo?.()
  }
}

it('a node that was declared dead while it was paused commits nothing when it wakes up', async () => {
  expect(await wakesUpDead({})).toEqual({ problem: undefined, triggered: 'refused' })
  const planted = await wakesUpDead(RUN_PLANTS['commit what a node sends that was declared dead'] ?? {})
  expect(planted).toEqual({
    problem: expect.stringMatching(/^I8: .* began after the answer to its pause/),
    triggered: 'answered',
  })
})
