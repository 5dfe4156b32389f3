import type { Static } from 'typebox'
import { RUN_EVENT_WORDS } from '../../contract/words/states.js'
import { listRunMessageLogs, type RunEvent } from '../../contract/workflow/runs.js'
import { FAILED } from '../exit-codes.js'
import { remote, type Session } from '../remote/remote.js'
import { NewEntries, printEntry, readings } from '../remote/watching.js'
import { moment } from '../terminal/figures.js'
import { paintOf, printable, toneOf } from '../terminal/text.js'
import { findRun } from './find.js'

type Entry = Static<typeof RunEvent>

/** Bodies are truncated to this length: results of steps may be large, and a line shows only their beginning. */
const SHOWN_CHARACTERS = 200
const ENDS: ReadonlySet<string> = new Set(['RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED'])

/** `homeport runs watch`. */
export const watchCommand = remote({
  name: 'watch',
  summary: 'follow a workflow run to its end; exit code 1 unless it succeeded',
  isStream: true,
  args: [['<id>', 'id of the run']],
  examples: ['homeport runs watch wfr_…', 'homeport runs watch wfr_… --json | jq .state'],
  run: async (session, _, runId) => {
    await findRun(session.api, runId)
    const query = { workflowRunId: [runId], trimBody: SHOWN_CHARACTERS }
    const entries = new NewEntries<Entry>(keyOf)
    for await (const { events } of readings(() => session.api.call(listRunMessageLogs, { query }))) {
      const fresh = entries.take(events)
      for (const entry of fresh) printEntry(session, entry, () => lineOf(session, entry))
      const end = fresh.findLast(({ state }) => ENDS.has(state))
      if (end !== undefined) return session.endWith(end.state === 'RUN_SUCCESS' ? 0 : FAILED)
    }
  },
})

const keyOf = ({ time, state, messageId, stepInfo }: Entry): string =>
  [time, state, messageId, stepInfo?.stepId, stepInfo?.stepName].join(' ')

/** The subject of an entry, because states of runs and steps have the same words. Only a step with a result has its name. */
function subjectOf(state: Entry['state'], stepName: string | undefined): string | undefined {
  if (stepName !== undefined) return `"${stepName}"`
  if (state.startsWith('RUN_')) return 'run'
  return state.startsWith('STEP_') ? 'next step' : undefined
}

function lineOf({ io }: Session, { time, state, stepInfo, error, responseStatus, nextDeliveryTime }: Entry): string {
  const paint = paintOf(io)
  const facts = [
    subjectOf(state, stepInfo?.stepName),
    responseStatus !== undefined && responseStatus > 0 && `HTTP ${responseStatus}`,
    error,
    nextDeliveryTime !== undefined && `again at ${moment(nextDeliveryTime)}`,
  ]
  const words = facts.filter((fact) => typeof fact === 'string').map(printable)
  return `${[moment(time), paint(toneOf(RUN_EVENT_WORDS[state]), RUN_EVENT_WORDS[state].word), ...words].join('  ')}\n`
}
