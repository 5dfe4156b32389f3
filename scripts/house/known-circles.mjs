/**
 * Circles that are still there. The list may only get shorter: a circle that is not wholly within one of these groups is
 * an error, and so is a group of which nothing is a circle any more.
 */
export const KNOWN_CIRCLES = [
  ['src/databases/transactions/databases.ts', 'src/databases/transactions/usage.ts'],
  [
    'src/databases/change-deps.ts',
    'src/databases/changes/changer.ts',
    'src/databases/desired-engine.ts',
    'src/databases/directory.ts',
    'src/databases/users/administration.ts',
    'src/databases/users/index.ts',
  ],
  ['src/gateway/rest/gathered-replies.ts', 'src/gateway/rest/send-commands.ts'],
  ['src/gateway/rest/command-request.ts', 'src/gateway/rest/rest-listener.ts', 'src/gateway/rest/rest-request.ts'],
  ['src/cli/bulk/action.ts', 'src/cli/bulk/events.ts'],
  ['console/src/pages/databases/data/element-dialog.tsx', 'console/src/pages/databases/data/value-elements.tsx'],
  ['console/src/pages/databases/detail.tsx', 'console/src/pages/databases/routes.tsx'],
]
