import type { Static } from 'typebox'
import { AcceptedAnswer, cancelWorkflowRuns } from '../../contract/bulk/actions.js'
import { actionFacts, endOf, watch } from '../bulk/action.js'
import { FAILED } from '../exit-codes.js'
import { parsed } from '../remote/api.js'
import { remote, type Session } from '../remote/remote.js'
import { counted } from '../terminal/figures.js'
import { renderFacts } from '../terminal/table.js'
import { printable } from '../terminal/text.js'
import { type Selector, type SelectorOptions, selectorFlags, selectorOf } from './selector.js'

interface CancelOptions extends SelectorOptions {
  readonly dryRun: boolean
  readonly async: boolean
  readonly report: boolean
  readonly yes?: boolean
}

type Answer = Static<typeof cancelWorkflowRuns.success.body>

/** `homeport runs cancel`: cancels runs forever, by ids or by filters. */
export const cancelCommand = remote<CancelOptions, [string[]]>({
  name: 'cancel',
  summary: 'cancel workflow runs forever, by ids or by filters',
  args: [['[ids...]', 'these runs; else those that all filters together select']],
  isDestructive: true,
  flags: (command) =>
    selectorFlags(command)
      .option('--dry-run', 'cancel nothing; say how many it would be, and some of them', false)
      .option('--async', 'do not wait for the end; `homeport bulk watch` follows it', false)
      .option('--report', 'say also what became of which', false),
  examples: [
    'homeport runs cancel wfr_1 wfr_2',
    'homeport runs cancel --url https://example.com/ --label slow --from 1h --dry-run',
    'homeport runs cancel --url https://example.com/ --label slow --from 1h --yes',
    'homeport runs cancel --all --async --yes',
  ],
  run: async (session, options, ids) => {
    const selector = selectorOf(options, ids)
    if (options.dryRun) return await look(session, selector)
    if (options.yes !== true) await ask(session, selector)
    if (options.async) return await begin(session, selector)
    // A person sees how far it is; a program gets the answer of the API.
    return session.isJson ? await cancel(session, selector, options) : await cancelAndWatch(session, selector, options)
  },
})

async function look({ api, show }: Session, selector: Selector): Promise<void> {
  const answer = await api.call(cancelWorkflowRuns, { body: { ...selector, dryRun: true } })
  const sample = answer.sample ?? []
  const rest = (answer.matched ?? 0) - sample.length
  show(answer, () => {
    const ids = sample.map((id) => `  ${printable(id)}\n`).join('')
    return `would cancel ${counted(answer.matched ?? 0, 'run')}\n${ids}${rest > 0 ? `  and ${counted(rest, 'more')}\n` : ''}`
  })
}

/** The count is looked up first, so that the person confirms a number. */
async function ask({ api, confirm }: Session, selector: Selector): Promise<void> {
  const { matched = 0 } = await api.call(cancelWorkflowRuns, { body: { ...selector, dryRun: true } })
  await confirm(`Cancel ${counted(matched, 'run')} forever?`, String(matched))
}

/** The server takes the set and goes on by itself; answers the id of the action. */
async function accept({ api }: Session, selector: Selector): Promise<Static<typeof AcceptedAnswer>> {
  const { value } = await api.send(cancelWorkflowRuns, { body: { ...selector, async: true } })
  return parsed(AcceptedAnswer, value)
}

async function begin(session: Session, selector: Selector): Promise<void> {
  const accepted = await accept(session, selector)
  const { actionId, matched } = accepted
  session.show(accepted, () => `cancelling ${counted(matched, 'run')}: homeport bulk watch ${actionId}\n`)
}

async function cancel({ api, show, endWith }: Session, selector: Selector, { report }: CancelOptions) {
  const answer: Answer = await api.call(cancelWorkflowRuns, { body: { ...selector, ...(report && { report }) } })
  show(answer, () => '')
  if ((answer.failed ?? 0) > 0) endWith(FAILED)
}

async function cancelAndWatch(session: Session, selector: Selector, { report }: CancelOptions) {
  const { actionId } = await accept(session, selector)
  const action = await watch(session, actionId)
  session.io.out(endOf(action) + (report ? renderFacts(session.io, actionFacts(action)) : ''))
  if (action.failed > 0) session.endWith(FAILED)
}
