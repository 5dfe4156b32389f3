import { Clients } from '../../../queue/testing/nodes/clients.js'
import { ACCOUNT } from '../../../queue/testing/nodes/ledger.js'
import type { Attachment, AttachmentDeps } from '../../../queue/testing/nodes/simulated-node.js'
import type { SimulationExtension, Stage } from '../../../queue/testing/nodes/stage.js'
import { silentLogger } from '../../../telemetry/index.js'
import { createWorkflow } from '../../../workflow/index.js'
import { createBulk } from '../../index.js'
import * as bulkPaused from '../../transactions/bulk-paused.js'
import { BulkLedger } from './bulk-ledger.js'
import * as census from './census.js'
import { RunClients } from './run-clients.js'
import { RunLedger } from './run-ledger.js'
import { Sdk } from './sdk.js'

const LIMITS = {
  deliveryTimeoutMs: 60_000,
  retentionMs: 86_400_000,
  retentionBytes: 2 ** 30,
  queueBodyLimitBytes: 2 ** 20,
  responseKeepBytes: 100,
}

/** Builds workflows and bulk actions of a node. */
export function attachRuns({ store, clock, cluster, queue }: AttachmentDeps): Attachment {
  const shared = { store, clock, cluster, queue, logger: silentLogger, ...LIMITS }
  const accountOfUser = () => ACCOUNT
  const workflow = createWorkflow({ ...shared, accountOfUser, publicUrl: 'http://homeport.test' })
  const bulk = createBulk(shared)
  workflow.guard(bulk.gate)
  return { services: [workflow, bulk], routes: [...workflow.routes(), ...bulk.routes()] }
}

/** Runs, bulk cancels of runs with their undo, and pauses, for a simulation of nodes. */
export function runExtension(stage: Stage): SimulationExtension {
  const [clients, runs] = [new Clients(stage), new RunLedger(stage)]
  const bulk = new BulkLedger(stage, (seq) => runs.continued(seq))
  stage.effects.on(bulkPaused.resume, () => runs.workflowResumed())
  const sdk = new Sdk(stage, clients, runs)
  const runClients = new RunClients({ stage, clients, runs, bulk })
  return {
    attach: attachRuns,
    receive: (request) => sdk.receive(request),
    act: () => runClients.act(),
    lostCommits: () => runs.lostCommits(),
    isOver: () => !stage.memory.run(census.isBusy, {}),
    checkEnd: () => {
      runs.checkEnd(bulk.all)
      bulk.checkEnd()
    },
  }
}
