/** `npm run check`: types, lint and house rules. */
import { runChecks } from './lib/check.mjs'
import { script } from './lib/main.mjs'

await script(async () => {
  const results = await runChecks()
  if (results.some(({ ok }) => !ok)) process.exitCode = 1
})
