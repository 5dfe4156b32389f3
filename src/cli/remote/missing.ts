import { HomeportError, isError } from '../../contract/errors/errors.js'

/**
 * The answer to a request for one thing. That there is no such thing is said in words of the command line: the server's
 * own name a request, and not a command.
 * @throws HomeportError `cli_not_found` where the server answered 404; else what the request throws.
 */
export async function orMissing<Answer>(asked: Promise<Answer>, problem: string): Promise<Answer> {
  try {
    return await asked
  } catch (error) {
    if (!isError(error, 'server_refused') || error.details.status !== 404) throw error
    throw new HomeportError('cli_not_found', { problem }, { cause: error })
  }
}
