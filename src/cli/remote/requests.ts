/** Errors of the server name requests of the API. This file replaces these with the commands that send them. */

/** Requests with a command for each. Words in braces match any text, which is inserted into the command. */
const COMMANDS: readonly (readonly [request: string, command: string])[] = [
  ['GET /v2/accounts', 'accounts list'],
  ['GET /v2/alerts/channels', 'alerts channels'],
  ['GET /v2/alerts/rules', 'alerts rules'],
  ['GET /v2/alerts/silences', 'alerts silences'],
  ['GET /v2/apikeys', 'keys list'],
  ['GET /v2/dlq', 'queue dlq list'],
  ['GET /v2/events', 'queue logs'],
  ['GET /v2/logs?messageId={id}', 'queue logs --message {id}'],
  ['GET /v2/nodes', 'nodes list'],
  ['GET /v2/queue-tokens', 'queue tokens list'],
  ['GET /v2/redis/databases', 'db list'],
  ['GET /v2/redis/list-backup/{id}', 'db backups list'],
  ['GET /v2/redis/quarantine', 'db quarantine list'],
  ['GET /v2/schedules', 'queue schedules list'],
  ['GET /v2/teams', 'teams list'],
  ['GET /v2/teams/{id}', 'teams members'],
  ['GET /v2/workflows/bulkActions', 'bulk list'],
  ['GET /v2/workflows/bulkActions/{id}', 'bulk show {id}'],
  ['DELETE /v2/workflows/bulkActions/{id}/fence', 'bulk unfence {id}'],
  ['GET /v2/workflows/bulkSelectors', 'bulk selectors list'],
  ['GET /v2/workflows/logs', 'runs list'],
  ['GET /v2/workflows/logs?workflowRunId={id}', 'runs show {id}'],
  ['POST /v2/queues', 'queue queues upsert'],
  ['POST /v2/redis/import/{id}', 'db import'],
  ['POST /v2/redis/enable-prodpack/{id}', 'db production-pack'],
  ['POST /v2/redis/enable-tls/{id}', 'db tls'],
  ['POST /v2/redis/update-allowlist/{id}', 'db allow-list'],
  ['POST /v2/redis/{id}/change-plan', 'db plan'],
  ['POST /v2/topics/{id}/endpoints', 'queue groups add {id}'],
  ['POST /v2/workflows/dlq/resume', 'runs resume'],
  ['POST /v2/workflows/runs/{id}/restart', 'runs restart {id} --from-step'],
]

const FILLED = '([^\\s/?,;]*[^\\s/?,;.])'

const PATTERNS = COMMANDS.map(([request, command]) => {
  const parts = request.split('{id}').map((part) => part.replace(/[.?+*()[\]]/g, '\\$&'))
  // Not the beginning of a longer path.
  return { pattern: new RegExp(`${parts.join(FILLED)}(?![\\w/?-])`, 'g'), command }
})

/** Replaces the requests in a text of the server with commands; unknown requests stay. */
export const withCommands = (text: string): string =>
  PATTERNS.reduce(
    (before, { pattern, command }) =>
      before.replaceAll(pattern, (_, id: unknown) => {
        const named = typeof id === 'string' && !id.startsWith('{') ? id : '<id>'
        return `\`homeport ${command.replace('{id}', named)}\``
      }),
    text,
  )
