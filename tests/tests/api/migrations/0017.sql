UPDATE sweep SET failure = 'the server ended';
