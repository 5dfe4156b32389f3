/** The program of the commands that serve. The build makes one file of it, with all that a server needs. */
export { runCli } from './cli/index.js'
