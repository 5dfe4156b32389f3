import {
  type Alert,
  type AlertRule,
  changeAlertRule,
  listAlertHistory,
  listAlertRules,
} from '../../contract/alerts/alerts.js'
import { ALERT_KINDS, type AlertKind } from '../../contract/alerts/kinds.js'
import { ALERT_WORDS, NOTIFICATION_WORDS } from '../../contract/words/states.js'
import { misused } from '../errors.js'
import { group, remote } from '../remote/remote.js'
import { given, oneOf, wholeNumber } from '../remote/values.js'
import { momentOfSeconds } from '../terminal/figures.js'
import { type Column, renderTable, stateColumn } from '../terminal/table.js'
import { addCommand, channelsCommand, removeCommand, testCommand, updateCommand } from './channels.js'
import { silenceCommand, silencesCommand, unsilenceCommand } from './silences.js'

const kind = oneOf(ALERT_KINDS)

const thresholdOf = ({ threshold, unit }: AlertRule): string | undefined =>
  threshold === undefined ? undefined : `${threshold} ${unit}`

const ruleColumns: readonly Column<AlertRule>[] = [
  { title: 'RULE', value: (one) => one.kind },
  { title: 'ALERTS', value: (one) => (one.enabled ? 'yes' : 'no') },
  { title: 'THRESHOLD', value: thresholdOf },
  { title: 'OF WHAT', cuts: true, value: (one) => one.summary },
]

const rulesCommand = remote({
  name: 'rules',
  summary: 'list the rules with their thresholds',
  examples: ['homeport alerts rules'],
  run: async ({ api, io, show }) => {
    const rules = await api.call(listAlertRules)
    show(rules, () => renderTable(io, ruleColumns, rules))
  },
})

interface RuleOptions {
  readonly on: boolean
  readonly off: boolean
  readonly threshold?: number
  readonly default: boolean
}

const ruleCommand = remote<RuleOptions>({
  name: 'rule',
  summary: 'turn a rule on or off, or set its threshold',
  args: [['<kind>', 'name of the rule']],
  flags: (command) =>
    command
      .option('--on', 'alert', false)
      .option('--off', 'do not alert', false)
      .option('--threshold <number>', 'when to alert, in the unit of the rule', wholeNumber(1))
      .option('--default', 'go back to the default threshold', false),
  examples: ['homeport alerts rule budget --threshold 50', 'homeport alerts rule run_failed --off'],
  run: async ({ api, io, show }, options, name) => {
    const { on, off, threshold } = options
    if (on && off) throw misused('Give --on or --off, not both.')
    const enabled = on ? true : off ? false : undefined
    const wanted = options.default ? null : threshold
    const body = { ...given({ enabled }), ...(wanted === undefined ? {} : { threshold: wanted }) }
    const rule = await api.call(changeAlertRule, { params: { kind: name }, body })
    show(rule, () => renderTable(io, ruleColumns, [rule]))
  },
})

const historyColumns: readonly Column<Alert>[] = [
  { title: 'WHEN', value: (one) => momentOfSeconds(one.last_at) },
  { title: 'RULE', value: (one) => one.kind },
  stateColumn((one) => ALERT_WORDS[one.status], 'STATUS'),
  { title: 'COUNT', value: (one) => String(one.count) },
  stateColumn((one) => NOTIFICATION_WORDS[one.state], 'NOTIFICATION'),
  { title: 'WHAT', cuts: true, value: (one) => one.title },
]

const historyCommand = remote<{ count: number; cursor?: string; rule?: AlertKind }>({
  name: 'history',
  summary: 'read the alerts, newest first',
  flags: (command) =>
    command
      .option('--rule <kind>', 'only alerts of this rule', kind)
      .option('--count <number>', 'most entries', wholeNumber(1, 100), 20)
      .option('--cursor <cursor>', 'continue after the previous page'),
  examples: ['homeport alerts history --rule dead_letter'],
  run: async ({ api, io, show, say }, { count, cursor, rule }) => {
    const page = await api.call(listAlertHistory, { query: { count, ...given({ cursor, kind: rule }) } })
    show(page, () => renderTable(io, historyColumns, page.alerts, 'There are no alerts.\n'))
    if (page.cursor !== undefined) say(`More: --cursor ${page.cursor}`)
  },
})

/** `homeport alerts`. */
export const alertsCommand = group('alerts', 'alerts: rules, channels, silences and history', [
  channelsCommand,
  addCommand,
  updateCommand,
  removeCommand,
  testCommand,
  historyCommand,
  silenceCommand,
  silencesCommand,
  unsilenceCommand,
  rulesCommand,
  ruleCommand,
])
