/**
 * `npm start [-- <flags>]`: sets up what is missing, then becomes the server.
 *
 * The server runs in this process, so signals and the exit code need no forwarding and no process stays behind.
 */
import { script } from './lib/main.mjs'
import { inProject } from './lib/paths.mjs'
import { setUp } from './lib/setup.mjs'

await script(() => setUp({ packages: 'run' }))
const main = inProject('dist/main.js')
process.argv = [process.execPath, main, 'start', ...process.argv.slice(2)]
await import(main)
