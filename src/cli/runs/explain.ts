import { remote } from '../remote/remote.js'
import { printable } from '../terminal/text.js'
import { findRun } from './find.js'

/** `homeport runs explain`: why a run waits, one line for each branch. */
export const explainCommand = remote({
  name: 'explain',
  summary: 'say in words why a workflow run has not ended',
  args: [['<id>', 'id of the run']],
  examples: ['homeport runs explain wfr_…'],
  run: async ({ api, show }, _, runId) => {
    const { because = [], workflowState } = await findRun(api, runId)
    const words = () => because.map(({ text }) => `${printable(text)}\n`).join('')
    show(because, () => (workflowState === 'RUN_STARTED' ? words() : `The run has ended: ${workflowState}.\n`))
  },
})
