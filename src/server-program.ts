/** The program of the commands that serve. The build bundles it into one file with everything that a server needs. */
export { runCli } from './cli/index.js'
