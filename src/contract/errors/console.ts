import { define, type None } from './entry.js'

/** Errors of signing in to the console. */
export const consoleErrors = {
  sign_in_refused: define<None>({
    status: 401,
    text: () => 'The e-mail or the API key is wrong. `homeport env` prints both for the first account.',
  }),
  sign_in_limit: define<{ retryAfterSeconds: number }>({
    status: 429,
    retry: 'later',
    text: ({ retryAfterSeconds }) =>
      `Too many failed sign-ins for this e-mail from this address. Try again in ${retryAfterSeconds} seconds.`,
  }),
  console_header_missing: define<None>({
    status: 403,
    text: () =>
      'A change with the session cookie of the console requires the header "X-Homeport-Console: 1", so that no other web page can send it. Programs should send an API key instead.',
  }),
} as const
