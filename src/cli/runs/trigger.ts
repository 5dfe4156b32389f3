import { triggerRun } from '../../contract/workflow/runs.js'
import { bodyOf, type DeliveryOptions, deliveryFlags, deliveryHeaders, withFlags } from '../queue/settings.js'
import { remote } from '../remote/remote.js'

/** `homeport runs trigger`. */
export const triggerCommand = remote<DeliveryOptions & { runId?: string }>({
  name: 'trigger',
  summary: 'start a run of the workflow at a URL',
  args: [['<url>', 'URL of the workflow']],
  flags: (command) =>
    deliveryFlags(command).option(
      '--run-id <id>',
      'id of the run (default: a new one); if it exists, no run is started',
    ),
  examples: [`homeport runs trigger http://localhost:3000/greeting --body '{"name": "Ada"}' --label hello`],
  run: async (session, options, destination) => {
    const { api, show } = session
    const headers = deliveryHeaders(options)
    if (options.runId !== undefined) headers['upstash-workflow-runid'] = options.runId
    const request = { params: { destination }, headers, body: await bodyOf(session, options) }
    const run = await withFlags(api.call(triggerRun, request))
    show(run, () => (run.deduplicated ? `${run.workflowRunId} already exists\n` : `triggered ${run.workflowRunId}\n`))
  },
})
