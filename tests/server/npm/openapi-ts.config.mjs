export default {
  input: process.env.CONTRACT,
  output: 'client',
  plugins: ['@hey-api/client-fetch', 'zod', { name: '@hey-api/sdk', validator: true }],
};
