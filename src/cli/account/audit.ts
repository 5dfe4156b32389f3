import { listAuditLogs, SEARCHED_TO, SEARCHED_TO_TIME } from '../../contract/accounts/audit.js'
import { MAX_AUDIT_ENTRIES } from '../../contract/accounts/audit-limits.js'
import { parsed } from '../remote/api.js'
import { remote } from '../remote/remote.js'
import { given, wholeNumber } from '../remote/values.js'
import { momentOfSeconds } from '../terminal/figures.js'
import { type Column, renderTable } from '../terminal/table.js'

/** `homeport audit`: reads the audit log. */
export const auditCommand = remote<{ count: number; before?: string; search?: string }>({
  name: 'audit',
  summary: 'read the audit log, newest first',
  flags: (command) =>
    command
      .option('--count <number>', 'most entries', wholeNumber(1, MAX_AUDIT_ENTRIES), 50)
      .option('--before <id>', 'only entries older than this entry')
      .option('--search <text>', 'only entries that contain this text'),
  examples: ['homeport audit --count 10', "homeport audit --json | jq -r '.[] | [.actor, .readable_format] | @tsv'"],
  run: async ({ api, io, show, say }, { count: limit, before, search }) => {
    const { headers, value } = await api.send(listAuditLogs, { query: { limit, ...given({ before, search }) } })
    const entries = parsed(listAuditLogs.success.body, value)
    const columns: Column<(typeof entries)[number]>[] = [
      { title: 'WHEN', value: (one) => momentOfSeconds(one.timestamp) },
      { title: 'ACTOR', value: (one) => one.actor, cuts: true },
      { title: 'IP ADDRESS', value: (one) => one.ip, isExtra: true },
      { title: 'CREDENTIAL', value: (one) => one.source, isExtra: true },
      { title: 'ACTION', value: (one) => one.action_string, cuts: true },
      { title: 'ENTITY', value: (one) => one.entity_name ?? one.entity },
    ]
    const continuation = continuationOf(headers)
    const none = continuation === undefined ? 'There are no entries.' : 'No entries match so far.'
    show(entries, () => renderTable(io, columns, entries, `${none}\n`))
    if (continuation !== undefined) say(continuation)
  },
})

/** The command that continues a search which has not searched all entries; `undefined` if it has. */
function continuationOf(headers: Headers): string | undefined {
  const logId = headers.get(SEARCHED_TO)
  const time = momentOfSeconds(Number(headers.get(SEARCHED_TO_TIME)))
  return logId === null ? undefined : `Searched as far as ${time}. Continue with: --before ${logId}`
}
