/** The header `Authorization` of an e-mail and an API key. */
export const basicOf = (email: string, apiKey: string): string =>
  `Basic ${Buffer.from(`${email}:${apiKey}`).toString('base64')}`
