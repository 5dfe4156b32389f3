import { remote } from '../remote/remote.js'
import { printable } from '../terminal/text.js'
import { endingOf } from './ending.js'
import { findRun } from './find.js'

/** `homeport runs explain`: why a run waits, one line for each branch, or how it has ended. */
export const explainCommand = remote({
  name: 'explain',
  summary: 'say in words why a workflow run has not ended, or how it did',
  args: [['<id>', 'id of the run']],
  examples: ['homeport runs explain wfr_…'],
  run: async ({ api, show }, _, runId) => {
    const run = await findRun(api, runId)
    const { because = [] } = run
    const lines = () =>
      run.workflowState === 'RUN_STARTED' ? because.map(({ text }) => printable(text)) : endingOf(run)
    show(because, () =>
      lines()
        .map((line) => `${line}\n`)
        .join(''),
    )
  },
})
