/**
 * Circles that are still there. The list may only get shorter: a circle that is not wholly within one of these groups is
 * an error, and so is a group of which nothing is a circle any more.
 */
export const KNOWN_CIRCLES = [
  ['src/queue/transactions/messages-packed.ts', 'src/queue/transactions/messages-publish.ts'],
  [
    'src/queue/api/message-view.ts',
    'src/queue/api/redact.ts',
    'src/queue/columns.ts',
    'src/queue/headers.ts',
    'src/queue/publish/settings.ts',
    'src/queue/types.ts',
  ],
  [
    'src/workflow/logs/because.ts',
    'src/workflow/logs/log-runs.ts',
    'src/workflow/logs/log-steps.ts',
    'src/workflow/logs/run-material.ts',
    'src/workflow/logs/step-fields.ts',
    'src/workflow/logs/subjects.ts',
    'src/workflow/protocol/sent-steps.ts',
    'src/workflow/runs/columns.ts',
  ],
  [
    'src/fleet/control.ts',
    'src/fleet/engine-config.ts',
    'src/fleet/snapshot/check.ts',
    'src/fleet/spec.ts',
    'src/fleet/types.ts',
  ],
  ['src/fleet/data/primary-data.ts', 'src/fleet/engine-run.ts'],
  [
    'src/gateway/client/hold.ts',
    'src/gateway/client/session-services.ts',
    'src/gateway/client/session.ts',
    'src/gateway/client/upload.ts',
    'src/gateway/commands/client-filter.ts',
    'src/gateway/commands/login.ts',
    'src/gateway/commands/note-command.ts',
    'src/gateway/commands/permits.ts',
    'src/gateway/commands/pinning.ts',
    'src/gateway/commands/reach.ts',
    'src/gateway/commands/redirects.ts',
    'src/gateway/commands/router.ts',
    'src/gateway/commands/session-commands.ts',
    'src/gateway/commands/transactions.ts',
  ],
  ['src/gateway/gateway.ts', 'src/gateway/shut-ports.ts'],
  ['src/cli/bulk/action.ts', 'src/cli/bulk/events.ts'],
  ['console/src/pages/databases/data/element-dialog.tsx', 'console/src/pages/databases/data/value-elements.tsx'],
  ['console/src/pages/databases/detail.tsx', 'console/src/pages/databases/routes.tsx'],
]
