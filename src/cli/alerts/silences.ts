import { parseDuration } from '../../base/index.js'
import { ALERT_KINDS, type AlertKind } from '../../contract/alerts/kinds.js'
import { createSilence, deleteSilence, listSilences, type Silence } from '../../contract/alerts/silences.js'
import { remote } from '../remote/remote.js'
import { durationText, given, oneOf } from '../remote/values.js'
import { momentOfSeconds } from '../terminal/figures.js'
import { type Column, renderTable } from '../terminal/table.js'

interface SilenceOptions {
  readonly rule?: AlertKind
  readonly subject?: string
  readonly for: string
  readonly reason?: string
}

/** `homeport alerts silence`. */
export const silenceCommand = remote<SilenceOptions>({
  name: 'silence',
  summary: 'keep alerts in the history without sending them, for a while',
  flags: (command) =>
    command
      .option('--rule <kind>', 'only alerts of this rule (default: all)', oneOf(ALERT_KINDS))
      .option('--subject <text>', 'only alerts about this, as the history shows it (default: all)')
      .option('--for <duration>', 'how long, such as 2h', durationText, '1h')
      .option('--reason <text>', 'why; shown in the list'),
  examples: ['homeport alerts silence --rule dead_letter --subject api.example.com --for 2h --reason "known outage"'],
  run: async ({ api, show }, options) => {
    const { rule, subject, reason } = options
    const until = Math.ceil((Date.now() + (parseDuration(options.for) ?? 0)) / 1000)
    const silence = await api.call(createSilence, { body: { until, ...given({ kind: rule, subject, reason }) } })
    show(silence, () => `silenced until ${momentOfSeconds(silence.until)} (${silence.silence_id})\n`)
  },
})

/** `homeport alerts silences`. */
export const silencesCommand = remote({
  name: 'silences',
  summary: 'list the silences that have not ended',
  examples: ['homeport alerts silences'],
  run: async ({ api, io, show }) => {
    const silences = await api.call(listSilences)
    const columns: Column<Silence>[] = [
      { title: 'RULE', value: (one) => one.kind ?? 'all' },
      { title: 'SUBJECT', value: (one) => one.subject ?? 'all' },
      { title: 'UNTIL', value: (one) => momentOfSeconds(one.until) },
      { isExtra: true, title: 'WHO', value: (one) => one.actor },
      { title: 'REASON', cuts: true, value: (one) => one.reason },
      { title: 'ID', value: (one) => one.silence_id },
    ]
    show(silences, () => renderTable(io, columns, silences, 'Nothing is silenced.\n'))
  },
})

/** `homeport alerts unsilence`. */
export const unsilenceCommand = remote({
  name: 'unsilence',
  summary: 'end a silence now',
  args: [['<silence>', 'id of the silence']],
  examples: ['homeport alerts unsilence sil_…'],
  run: async ({ api, show }, _options, id) => {
    const answer = await api.call(deleteSilence, { params: { id } })
    show(answer, () => `ended ${id}\n`)
  },
})
